package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// How long a repetition may wait, and how long it waits if the service does not say.
const (
	longestWait = 3 * time.Second
	usualWait   = 300 * time.Millisecond
	busyWait    = time.Second // after a 429: most limits are per second
)

// refused translates a status that is no success. again is as in once.
func (s *Service) refused(resp *http.Response, body []byte) (again time.Duration, err error) {
	status := resp.StatusCode
	var answer any
	_ = json.Unmarshal(body, &answer)                 // else it says nothing
	said := oneLine(s.redact(textIn(answer, 0)), 160) // a cut secret would no longer be known for one
	msg := fmt.Sprintf("HTTP status %d", status)
	if said != "" {
		msg += ", " + strconv.Quote(said)
	}
	wait, named := RetryAfter(resp.Header, time.Time{})
	if !named && resp.Header.Get("Retry-After") != "" {
		wait, named = longestWait+1, true // it named a time that cannot be read: not now
	}
	if named && wait > longestWait {
		msg += fmt.Sprintf(", come back in %v", wait.Round(time.Second))
	}
	if !named {
		wait = usualWait
		if status == http.StatusTooManyRequests {
			wait = busyWait
		}
	}
	r := &refusal{status: status, wait: wait, named: named, text: s.redact(msg)}
	quota := speaksOfQuota(said)
	if wait > longestWait || status < 500 && (status != http.StatusTooManyRequests || quota) { // which is not back in a moment
		wait = -1
	}
	code, hint := marchwarden.CodeUnavailable, ""
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		// What it said is left out: services like to repeat the key they refuse.
		r.text = fmt.Sprintf("refuses access with HTTP status %d", status)
		code, hint = marchwarden.CodeDenied, s.DeniedHint
	case status == http.StatusTooManyRequests:
		code = marchwarden.CodeRateLimited
	case status == http.StatusRequestTimeout || status == http.StatusGatewayTimeout:
		code = marchwarden.CodeTimeout
	case status == http.StatusPaymentRequired, status >= 400 && status < 500 && quota:
		code, hint = marchwarden.CodeDenied, s.DeniedHint
	}
	return wait, &marchwarden.Error{Code: code, Message: s.Name, Hint: hint, Err: r}
}

// speaksOfQuota tells a request that is refused for the account from one that is refused for itself.
func speaksOfQuota(said string) bool {
	said = strings.ToLower(said)
	return slices.ContainsFunc([]string{"quota", "usage limit", "plan limit", "your plan", "billing", "payment", "credit", "subscription", "api key", "api_key", "apikey"},
		func(w string) bool { return strings.Contains(said, w) })
}

// textIn is the first text under a usual name in the JSON of a refusal.
func textIn(v any, depth int) string {
	switch v := v.(type) {
	case string:
		return v
	case map[string]any:
		for _, name := range []string{"error", "detail", "message", "info", "code"} {
			if depth < 3 && v[name] != nil {
				if s := textIn(v[name], depth+1); s != "" {
					return s
				}
			}
		}
	}
	return ""
}

func oneLine(s string, n int) string { return plaintext.Clip(plaintext.Fold(s), n) }

// fail makes the error of this service. Causes enter as text only: they may hold a secret.
func (s *Service) fail(code marchwarden.Code, hint, format string, args ...any) error {
	return &marchwarden.Error{Code: code, Message: s.Name + ": " + s.redact(fmt.Sprintf(format, args...)), Hint: hint}
}

// refusal is an answer that is no success. It holds no secret.
type refusal struct {
	status int
	wait   time.Duration // that the service asked for, if named
	named  bool
	text   string
}

func (r *refusal) Error() string { return r.text }

// Status is the HTTP status of the answer by which a service refused a request, or 0. It tells "there is
// no such thing here" (404) from a service that cannot answer.
func Status(err error) int {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.status
	}
	return 0
}

// AskedWait is how long a service that refused asked to wait, if it did; a time that cannot be read is
// longer than any free repetition waits.
func AskedWait(err error) (time.Duration, bool) {
	if r, ok := errors.AsType[*refusal](err); ok && r.named {
		return r.wait, true
	}
	return 0, false
}

func (s *Service) canceled(ctx context.Context) error {
	return marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "%s: the request was stopped", s.Name)
}

// secrets are what the service was sent in confidence.
func (s *Service) secrets() []string {
	all := append(SecretsOf("", strings.TrimSpace(s.Base)), s.Secrets...)
	if u, err := url.Parse(strings.TrimSpace(s.Base)); err == nil && u.User != nil {
		all = append(all, u.User.Username())
	}
	return all
}

// redact replaces every secret, also as it looks in a URL, in JSON and in basic authentication.
func (s *Service) redact(text string) string { return without(text, s.secrets()) }
