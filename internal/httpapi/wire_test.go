package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestRetryAfter(t *testing.T) {
	const date, later, earlier = "Sun, 15 Nov 2026 08:00:00 GMT", "Sun, 15 Nov 2026 08:01:30 GMT", "Sun, 15 Nov 2026 07:00:00 GMT"
	now := time.Date(2026, 11, 15, 8, 1, 0, 0, time.UTC)
	for _, tt := range []struct {
		ms, s, date string
		now         time.Time
		want        time.Duration
		ok          bool
	}{
		{"", "", date, now, 0, false},
		{"", "3", "", time.Time{}, 3 * time.Second, true},
		{"", " 0.5 ", "", now, 500 * time.Millisecond, true},
		{"", "0", "", now, 0, true},
		{"250", "9", "", now, 250 * time.Millisecond, true},
		{"x", "9", "", now, 9 * time.Second, true},
		{"-1", later, date, now, 90 * time.Second, true},
		{"", later, date, time.Time{}, 90 * time.Second, true},
		{"", later, date, now, 90 * time.Second, true}, // by the server's clock
		{"", " " + later + " ", "", now, 30 * time.Second, true},
		{"", later, "yesterday", now, 30 * time.Second, true},
		{"", later, "", time.Time{}, 0, false},
		{"", earlier, date, now, 0, true},
		{"", earlier, "", now, 0, true},
		{"", "Sun, 15 Nov 9026 08:00:00 GMT", date, now, longestAsked, true},
		{"", "1e300", date, now, longestAsked, true},
		{"", "1e999", date, now, longestAsked, true},
		{"Inf", "1", date, now, longestAsked, true},
		{"", "-5", date, now, 0, false}, {"", "-1e999", date, now, 0, false}, {"", "NaN", date, now, 0, false}, {"", "soon", date, now, 0, false},
	} {
		h := http.Header{}
		h.Set("Retry-After-Ms", tt.ms)
		h.Set("Retry-After", tt.s)
		h.Set("Date", tt.date)
		if got, ok := RetryAfter(h, tt.now); got != tt.want || ok != tt.ok {
			t.Errorf("%+v gives %v, %v", tt, got, ok)
		}
	}
}

func TestRetryAfterStaysInBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := http.Header{}
		for _, name := range []string{"Retry-After-Ms", "Retry-After", "Date"} {
			h.Set(name, rapid.OneOf(rapid.String(), rapid.StringMatching(`-?[0-9]{1,30}(e[0-9]{1,4})?`),
				rapid.StringMatching(`(Mon|Sun), [0-3][0-9] Nov [0-9]{4} [01][0-9]:00:00 GMT`)).Draw(t, name))
		}
		if d, ok := RetryAfter(h, time.Time{}); d < 0 || d > longestAsked || !ok && d != 0 {
			t.Fatalf("%v gives %v, %v", h, d, ok)
		}
	})
}

func TestStayAway(t *testing.T) {
	for _, tt := range []struct {
		status int
		after  string
		want   time.Duration // 0 is that it does not say so
	}{
		{429, "", usualPause}, {429, "5", 5 * time.Second}, {429, "soon", usualPause}, {429, "0", 0},
		{503, "7", 7 * time.Second}, {503, "", 0}, {503, "0", 0}, {503, "soon", 0},
		{200, "5", 0}, {500, "7", 0}, {403, "7", 0},
	} {
		resp := &http.Response{StatusCode: tt.status, Header: http.Header{}}
		if tt.after != "" {
			resp.Header.Set("Retry-After", tt.after)
		}
		if got, ok := StayAway(resp, time.Time{}); got != tt.want || ok != (tt.want > 0) {
			t.Errorf("%d %q: %v %v, want %v", tt.status, tt.after, got, ok, tt.want)
		}
	}
}

// closer counts how often it is closed.
type closer struct {
	io.Reader
	closed int
}

func (c *closer) Close() error { c.closed++; return nil }

func TestLimit(t *testing.T) {
	over, broken := errors.New("over"), errors.New("broken")
	for _, tt := range []struct {
		body  string
		limit int64
		end   error // of the body; nil is a good end
		want  string
		err   error
	}{
		{"", 0, nil, "", nil},
		{"12345", 6, nil, "12345", nil},
		{"12345", 5, nil, "12345", nil},
		{"12345", 4, nil, "1234", over},
		{"12345", 0, nil, "", over},
		{"12345", -1, nil, "", over},
		{"12345", math.MaxInt64, nil, "12345", nil},
		{"12345", 5, broken, "12345", broken},
		{"12345", 4, broken, "1234", over},
	} {
		for name, way := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "halves": iotest.HalfReader, "data with the end": iotest.DataErrReader,
		} {
			r := way(bytes.NewReader([]byte(tt.body)))
			if tt.end != nil {
				r = io.MultiReader(r, iotest.ErrReader(tt.end))
			}
			c := &closer{Reader: r}
			body := Limit(c, tt.limit, over)
			got, err := io.ReadAll(body)
			if string(got) != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("%s, %+v: %q, %v", name, tt, got, err)
			}
			if n, again := body.Read(make([]byte, 8)); tt.err == over && (n != 0 || again != over) {
				t.Errorf("%s, %+v: after the end %d, %v", name, tt, n, again)
			}
			if err := body.Close(); err != nil || c.closed != 1 {
				t.Errorf("closed %d times: %v", c.closed, err)
			}
		}
	}
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for _, tt := range []struct {
			name string
			ctx  context.Context
			d    time.Duration
			want time.Duration
			err  error
		}{
			{"ended before", gone, time.Hour, 0, context.Canceled},
			{"ended before, nothing to wait for", gone, 0, 0, context.Canceled},
			{"to its end", t.Context(), time.Minute, time.Minute, nil},
			{"nothing", t.Context(), -1, 0, nil},
		} {
			start := time.Now()
			if err := Sleep(tt.ctx, tt.d); err != tt.err || time.Since(start) != tt.want {
				t.Errorf("%s: %v after %v", tt.name, err, time.Since(start))
			}
		}
		late, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		start := time.Now()
		if err := Sleep(late, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("a deadline on the way: %v after %v", err, time.Since(start))
		}
	})
}
