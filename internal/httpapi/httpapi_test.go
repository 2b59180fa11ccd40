package httpapi

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a handler on loopback and returns a service for it.
func serve(t *testing.T, h http.HandlerFunc) *Service {
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return &Service{Name: "svc", Base: srv.URL + "/v1/", HTTP: srv.Client(), Timeout: 5 * time.Second, DeniedHint: "check SVC_KEY"}
}

// transport answers without a network, for tests with a false clock.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func response(status int, body string, header ...string) *http.Response {
	w := httptest.NewRecorder()
	for i := 0; i+1 < len(header); i += 2 {
		w.Header().Set(header[i], header[i+1])
	}
	w.WriteHeader(status)
	io.WriteString(w, body)
	return w.Result()
}

func TestRequests(t *testing.T) {
	var got []string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = append(got, fmt.Sprintf("%s %s %s|%s|%s|%s|%s|%s", r.Method, r.URL, b, r.UserAgent(), r.Header.Get("Accept"), r.Header.Get("Content-Type"), r.Header.Get("X-Key"), r.Header.Get("Cookie")))
		http.SetCookie(w, &http.Cookie{Name: "id", Value: "1"})
		io.WriteString(w, `{"n": 7}`)
	})
	s.UserAgent, s.Header = "test/1", http.Header{"x-key": {"k"}}
	var into struct{ N int }
	if err := s.GetJSON(t.Context(), "find", url.Values{"q": {"a b&c"}}, &into); err != nil || into.N != 7 {
		t.Errorf("%v, %+v", err, into)
	}
	if err := s.PostJSON(t.Context(), "/find", map[string]string{"q": "x"}, &into); err != nil {
		t.Error(err)
	}
	if b, err := s.Get(t.Context(), "raw", nil); err != nil || string(b) != `{"n": 7}` {
		t.Errorf("%s, %v", b, err)
	}
	want := []string{
		"GET /v1/find?q=a+b%26c |test/1|application/json||k|",
		`POST /v1/find {"q":"x"}|test/1|application/json|application/json|k|`,
		"GET /v1/raw |test/1|||k|",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestStatus(t *testing.T) {
	for _, tt := range []struct {
		status int
		body   string
		want   marchwarden.Code
		text   string
	}{
		{401, `{"error": "your key abc is bad"}`, marchwarden.CodeDenied, "svc: refuses access with HTTP status 401"},
		{403, ``, marchwarden.CodeDenied, "svc: refuses access with HTTP status 403"},
		{402, `{"message": "pay"}`, marchwarden.CodeDenied, `svc: HTTP status 402, "pay"`},
		{429, `{"error": {"message": "slow\ndown"}}`, marchwarden.CodeRateLimited, `svc: HTTP status 429, "slow down"`},
		{408, ``, marchwarden.CodeTimeout, `svc: HTTP status 408`},
		{504, `<html>`, marchwarden.CodeTimeout, `svc: HTTP status 504`},
		{400, `{"detail": [1, 2]}`, marchwarden.CodeUnavailable, `svc: HTTP status 400`},
		{404, `{"error": "no such thing"}`, marchwarden.CodeUnavailable, `svc: HTTP status 404, "no such thing"`},
		{432, `{"detail": {"error": "This request exceeds your plan's set usage limit."}}`, marchwarden.CodeDenied, `svc: HTTP status 432, "This request exceeds your plan's set usage limit."`},
		{422, `{"error": {"code": "SUBSCRIPTION_TOKEN_INVALID"}}`, marchwarden.CodeDenied, `svc: HTTP status 422, "SUBSCRIPTION_TOKEN_INVALID"`},
		{500, `"quota"`, marchwarden.CodeUnavailable, `svc: HTTP status 500, "quota"`},
		{304, ``, marchwarden.CodeUnavailable, `svc: HTTP status 304`},
		{502, `{"message": "` + strings.Repeat("x", 5000) + `"}`, marchwarden.CodeUnavailable, `svc: HTTP status 502, "` + strings.Repeat("x", 160) + `…"`},
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.status)
			io.WriteString(w, tt.body)
		})
		s.NoRetry = true
		_, err := s.Get(t.Context(), "", nil)
		if marchwarden.CodeOf(err) != tt.want || err.Error() != tt.text {
			t.Errorf("%d: %s %v, want %s %s", tt.status, marchwarden.CodeOf(err), err, tt.want, tt.text)
		}
		if hint := marchwarden.HintOf(err); (hint == "check SVC_KEY") != (tt.want == marchwarden.CodeDenied) {
			t.Errorf("%d: hint %q", tt.status, hint)
		}
	}
}

// TestRepetition counts the requests and the time that each refusal costs.
func TestRepetition(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		header []string
		body   string
		sent   int
		waited time.Duration
	}{
		{"seconds", 429, []string{"Retry-After", "2"}, "", 2, 2 * time.Second},
		{"none named", 429, nil, "", 2, busyWait},
		{"server fault", 503, nil, "", 2, usualWait},
		{"date", 503, []string{"Retry-After", "Wed, 21 Oct 2026 07:28:02 GMT", "Date", "Wed, 21 Oct 2026 07:28:00 GMT"}, "", 2, 2 * time.Second},
		{"past date", 503, []string{"Retry-After", "Wed, 21 Oct 2026 07:27:02 GMT", "Date", "Wed, 21 Oct 2026 07:28:00 GMT"}, "", 2, 0},
		{"date without a clock", 503, []string{"Retry-After", "Wed, 21 Oct 2026 07:28:02 GMT"}, "", 1, 0},
		{"an hour", 429, []string{"Retry-After", "3600"}, "", 1, 0},
		{"an age", 429, []string{"Retry-After", "1e300"}, "", 1, 0},
		{"NaN", 429, []string{"Retry-After", "NaN"}, "", 1, 0},
		{"nonsense", 429, []string{"Retry-After", "soon"}, "", 1, 0},
		{"spent quota", 429, nil, `{"error": "monthly quota used up"}`, 1, 0},
		{"the caller's fault", 400, nil, "", 1, 0},
		{"denied", 401, []string{"Retry-After", "1"}, "", 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sent := 0
				s := Service{Name: "svc", Base: "http://svc.example", HTTP: &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
					sent++
					return response(tt.status, tt.body, tt.header...), nil
				})}}
				start := time.Now()
				_, err := s.Get(t.Context(), "", nil)
				if waited := time.Since(start); err == nil || sent != tt.sent || waited != tt.waited {
					t.Errorf("%v after %d requests and %v, want %d and %v", err, sent, waited, tt.sent, tt.waited)
				}
			})
		})
	}
}

func TestRepetitionHelps(t *testing.T) {
	var sent []string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if sent = append(sent, string(b)); len(sent) == 1 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(429)
			return
		}
		io.WriteString(w, `{}`)
	})
	var into struct{}
	if err := s.PostJSON(t.Context(), "", "hello", &into); err != nil || len(sent) != 2 || sent[1] != `"hello"` {
		t.Errorf("%v after %q", err, sent)
	}
}

// TestTime tells the service's slowness from the caller's end.
func TestTime(t *testing.T) {
	silent := transport(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	busy := transport(func(*http.Request) (*http.Response, error) { return response(429, ""), nil })
	for _, tt := range []struct {
		name    string
		through transport
		timeout time.Duration // of the service
		ctx     func(context.Context) (context.Context, context.CancelFunc)
		want    marchwarden.Code
		waited  time.Duration
	}{
		{"own limit", silent, time.Second, nil, marchwarden.CodeTimeout, time.Second},
		{"default limit", silent, 0, nil, marchwarden.CodeTimeout, DefaultTimeout},
		{"caller's deadline", silent, time.Minute, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, marchwarden.CodeCanceled, time.Second},
		{"caller gone before", silent, time.Minute, func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		}, marchwarden.CodeCanceled, 0},
		{"own limit between two tries", busy, busyWait / 2, nil, marchwarden.CodeRateLimited, busyWait / 2},
		{"caller's deadline between two tries", busy, time.Minute, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, busyWait/2)
		}, marchwarden.CodeCanceled, busyWait / 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := t.Context(), func() {}
				if tt.ctx != nil {
					ctx, cancel = tt.ctx(ctx)
				}
				defer cancel()
				s := Service{Name: "svc", Base: "http://svc.example", HTTP: &http.Client{Transport: tt.through}, Timeout: tt.timeout}
				start := time.Now()
				_, err := s.Get(ctx, "", nil)
				if waited := time.Since(start); marchwarden.CodeOf(err) != tt.want || waited != tt.waited {
					t.Errorf("%v after %v, want %v after %v", err, waited, tt.want, tt.waited)
				}
			})
		})
	}
}

// TestCancelReaches: the service learns that the caller is gone.
func TestCancelReaches(t *testing.T) {
	started, gone := make(chan struct{}), make(chan struct{})
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done()
		close(gone)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	if _, err := s.Get(ctx, "", nil); marchwarden.CodeOf(err) != marchwarden.CodeCanceled || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	select {
	case <-gone:
	case <-time.After(30 * time.Second):
		t.Error("the service still works for a caller that is gone")
	}
}

func TestBomb(t *testing.T) {
	var sent atomic.Int64
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		zw := gzip.NewWriter(w)
		chunk := make([]byte, 1<<20)
		for range 500 {
			if _, err := zw.Write(chunk); err != nil {
				return
			}
			sent.Add(1)
		}
	})
	s.MaxBytes, s.Timeout = 1<<20, time.Minute
	if _, err := s.Get(t.Context(), "", nil); marchwarden.CodeOf(err) != marchwarden.CodeMalformed || !strings.Contains(err.Error(), "over the limit of 1048576 bytes") {
		t.Errorf("got %v", err)
	}
	t.Logf("%d MiB before compression were made", sent.Load())
}

func TestLimitIsExact(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "12345678") })
	for limit, want := range map[int64]marchwarden.Code{7: marchwarden.CodeMalformed, 8: "", 9: ""} {
		s.MaxBytes = limit
		if _, err := s.Get(t.Context(), "", nil); marchwarden.CodeOf(err) != want {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}

func TestRedirects(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/moved":
			http.Redirect(w, r, "/v1/here", http.StatusTemporaryRedirect)
		case "/v1/circle":
			http.Redirect(w, r, "/v1/circle", http.StatusFound)
		default:
			io.Copy(w, r.Body)
		}
	})
	var into string
	if err := s.PostJSON(t.Context(), "moved", "kept", &into); err != nil || into != "kept" {
		t.Errorf("same host: %q, %v", into, err)
	}
	if _, err := s.Get(t.Context(), "circle", nil); marchwarden.CodeOf(err) != marchwarden.CodeUnavailable || !strings.Contains(err.Error(), "circle") {
		t.Errorf("circle: %v", err)
	}
	for from, to := range map[string]string{"https://svc.example": "http://svc.example/x", "http://svc.example": "http://svc.example:81/", "http://svc.example/": "http://169.254.169.254/"} {
		asked := 0
		s := Service{Name: "svc", Base: from, HTTP: &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
			asked++
			return response(302, "", "Location", to), nil
		})}}
		if _, err := s.Get(t.Context(), "", nil); marchwarden.CodeOf(err) != marchwarden.CodeUnavailable || asked != 1 {
			t.Errorf("%s to %s: %v after %d requests", from, to, err, asked)
		}
	}
}

// TestSecrets: whatever the transport or the service says, and in whatever form
// it repeats a secret, no error holds it.
func TestSecrets(t *testing.T) {
	statuses := []int{0, 200, 302, 400, 401, 429, 500} // 0 is no answer
	for _, tt := range []struct{ secret, said string }{
		{"     ", "     "}, // which an eye does not see, and Fields takes apart
		{"s3cr%t", "key s3cr%25t"},
		{`a"b\c`, `a\"b\\c`},
		{"p+q/r", strings.Repeat("y", 150) + "P%2bQ%2fR"},
	} {
		for _, status := range statuses {
			keepsSecret(t, tt.secret, tt.said, status)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[A-Za-z0-9+/= "\\%&é-]{5,40}`).Draw(t, "secret")
		said := rapid.SampledFrom([]string{"", "key ", strings.Repeat("y", 150)}).Draw(t, "before") + rapid.SampledFrom(formsOf(secret)).Draw(t, "form")
		keepsSecret(t, secret, said, rapid.SampledFrom(statuses).Draw(t, "status"))
	})
}

// formsOf are the ways in which a secret can be repeated.
func formsOf(secret string) []string {
	return []string{secret, url.QueryEscape(secret), url.PathEscape(secret), strings.ToLower(url.QueryEscape(secret)), strings.Trim(fmt.Sprintf("%q", secret), `"`)}
}

// keepsSecret makes a call that fails, with a service that says what it should not.
func keepsSecret(t rapid.TB, secret, said string, status int) {
	s := Service{Name: "svc", Base: "http://user:" + url.QueryEscape("pw"+secret) + "@svc.example", Secrets: []string{secret}, NoRetry: true,
		HTTP: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			if status == 0 {
				return nil, fmt.Errorf("dial %s with %s", r.URL, said)
			}
			body, err := json.Marshal(map[string]string{"error": said})
			if err != nil {
				t.Fatal(err)
			}
			return response(status, string(body)+"}", "Location", "http://"+strings.Map(hostLetter, said)+".example/?k="+url.QueryEscape(said)), nil
		})}}
	var into struct{ Error int }
	err := s.GetJSON(context.Background(), "", url.Values{"key": {secret}}, &into)
	text := fmt.Sprintf("%v %+v %#v", err, err, err)
	for _, f := range append(formsOf(secret), said) {
		if strings.Contains(strings.ToLower(text), strings.ToLower(f)) {
			t.Fatalf("status %d: %q is in %s", status, f, text)
		}
	}
	var wrapped *url.Error
	if err == nil || errors.As(err, &wrapped) {
		t.Fatalf("status %d: got %v", status, err)
	}
}

// hostLetter keeps what may be in a host.
func hostLetter(r rune) rune {
	if r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
		return r
	}
	return -1
}

func TestItems(t *testing.T) {
	type item struct{ N int }
	for body, want := range map[string]struct {
		items []item
		code  marchwarden.Code
	}{
		`[{"n": 1}, "x", {"n": 2}]`: {[]item{{1}, {2}}, ""},
		`[]`:                        {[]item{}, ""},
		`["x", 3]`:                  {nil, marchwarden.CodeMalformed},
		`null`:                      {nil, marchwarden.CodeMalformed},
	} {
		var list []json.RawMessage
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			t.Fatal(err)
		}
		got, err := Items[item]("svc", list)
		if diff := cmp.Diff(want.items, got); diff != "" || marchwarden.CodeOf(err) != want.code {
			t.Errorf("%s: %v\n%s", body, err, diff)
		}
	}
}

func TestConcurrent(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{}`) })
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			var into struct{}
			if err := s.GetJSON(t.Context(), "", nil, &into); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
