package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/secret"
)

// longestAsked is the longest wait that RetryAfter reports: beyond it a duration overflows.
const longestAsked = 365 * 24 * time.Hour

// RetryAfter reads how long an answer asks to wait, from Retry-After-Ms or else from Retry-After, in
// seconds or as a date. A date counts from the answer's own Date, and without one from now; a zero now
// is no clock. The wait is never negative and a year at most. False if nothing readable is asked for.
func RetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	for _, in := range []struct {
		name string
		unit time.Duration
	}{{"Retry-After-Ms", time.Millisecond}, {"Retry-After", time.Second}} {
		n, err := strconv.ParseFloat(strings.TrimSpace(h.Get(in.name)), 64)
		if (err == nil || errors.Is(err, strconv.ErrRange)) && n >= 0 { // which a NaN is not
			return time.Duration(min(n*float64(in.unit), float64(longestAsked))), true
		}
	}
	at, err := http.ParseTime(strings.TrimSpace(h.Get("Retry-After")))
	if err != nil {
		return 0, false
	}
	from, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		from = now
	}
	if from.IsZero() {
		return 0, false
	}
	return min(max(at.Sub(from), 0), longestAsked), true
}

// usualPause is how long a service is left alone that names no time: most limits are per second.
const usualPause = time.Second

// StayAway reports whether an answer asks all clients to stay away for a while, not only the sender
// of the request, and for how long. A refusal (429) does unless it allows the next request at once;
// that a service is down (503) does so only with a time.
func StayAway(resp *http.Response, now time.Time) (time.Duration, bool) {
	wait, named := RetryAfter(resp.Header, now)
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		if !named {
			wait = usualPause
		}
		return wait, wait > 0
	case http.StatusServiceUnavailable:
		return wait, wait > 0
	}
	return 0, false
}

// Limit returns a body that gives at most n bytes of rc; if rc has more, reading then fails with over.
func Limit(rc io.ReadCloser, n int64, over error) io.ReadCloser {
	return limited{http.MaxBytesReader(nil, rc, n), over}
}

type limited struct {
	io.ReadCloser
	over error
}

func (l limited) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		err = l.over
	}
	return n, err
}

// Sleep waits for d, or returns ctx's error as soon as ctx ends, or has ended.
func Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// maxSaid is how much of a service's own words an error repeats, in characters.
const maxSaid = 200

// Said makes a service's words fit for an error: on one line, without control and
// invisible characters and without the secrets, of at most 200 characters, no full
// stop. A control character leaves no space, as it does in plaintext.Fold: it may
// stand inside a secret, whose parts must come together to be found.
func Said(s string, secrets []string) string {
	s = without(s, secrets)
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	s = without(strings.Join(strings.Fields(s), " "), secrets) // what stood between their parts may be gone now
	if r := []rune(s); len(r) > maxSaid {
		s = string(r[:maxSaid-1]) + "…"
	}
	return strings.TrimRight(s, ". ")
}

// without is a text without the secrets, in whatever case and spelling: the short ones, too, as an error can do
// without them.
func without(s string, secrets []string) string {
	var forms []string
	for _, v := range secrets {
		for _, f := range []string{v, url.QueryEscape(v), url.PathEscape(v), strings.Trim(strconv.Quote(v), `"`)} {
			if f = strings.ToValidUTF8(f, ""); f != "" {
				forms = append(forms, regexp.QuoteMeta(f), regexp.QuoteMeta(strings.ReplaceAll(f, "%", "%25")))
			}
		}
	}
	if len(forms) == 0 {
		return s
	}
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) }) // a secret may be part of another
	s = regexp.MustCompile("(?i)"+strings.Join(forms, "|")).ReplaceAllLiteralString(s, "[key]")
	return secret.New(secrets...).Text(s) // in every other spelling
}

// SecretsOf are the key of a service, the password in its address, and that in basic authentication.
func SecretsOf(key, address string) []string {
	var secrets []string
	if key != "" {
		secrets = append(secrets, key)
	}
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return secrets
	}
	if password, ok := u.User.Password(); ok && password != "" {
		secrets = append(secrets, base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)), password)
	}
	return secrets
}

// longestLine bounds one line of an event stream; a longer one is bufio.ErrTooLong.
const longestLine = 32 << 20

// Event is one server-sent event.
type Event struct {
	Name string
	Data []byte // its data lines, joined by line breaks
}

// Events reads a stream of server-sent events. An event counts once its blank line has come: what a
// broken connection left unfinished is dropped. After an error there are no more events.
func Events(body io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		lines := bufio.NewScanner(body)
		lines.Buffer(nil, longestLine)
		var name string
		var data [][]byte
		size := 0
		for lines.Scan() {
			line := lines.Bytes()
			if len(line) == 0 {
				if len(data) > 0 && !yield(Event{name, bytes.Join(data, []byte("\n"))}, nil) {
					return
				}
				name, data, size = "", nil, 0
				continue
			}
			field, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch string(field) { // a comment has no name
			case "event":
				name = string(value)
			case "data":
				data = append(data, bytes.Clone(value))
				if size += len(value) + 1; size > longestLine {
					yield(Event{}, bufio.ErrTooLong)
					return
				}
			}
		}
		if err := lines.Err(); err != nil {
			yield(Event{}, err)
		}
	}
}
