package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// A refusal tells its status and the wait it asked for, wrapped or not; other
// errors tell neither.
func TestStatusOfRefusals(t *testing.T) {
	for _, tt := range []struct {
		status int
		after  string
		code   marchwarden.Code
		text   string
		wait   time.Duration
		named  bool
	}{
		{404, "", marchwarden.CodeUnavailable, "svc: HTTP status 404", 0, false},
		{401, "", marchwarden.CodeDenied, "svc: refuses access with HTTP status 401", 0, false},
		{429, "3600", marchwarden.CodeRateLimited, "svc: HTTP status 429, come back in 1h0m0s", time.Hour, true},
		{503, "5", marchwarden.CodeUnavailable, "svc: HTTP status 503, come back in 5s", 5 * time.Second, true},
		{503, "soon", marchwarden.CodeUnavailable, "svc: HTTP status 503, come back in 3s", longestWait + 1, true},
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if tt.after != "" {
				w.Header().Set("Retry-After", tt.after)
			}
			w.WriteHeader(tt.status)
		})
		_, err := s.Get(t.Context(), "x", nil)
		wrapped := fmt.Errorf("look: %w", err)
		wait, named := AskedWait(wrapped)
		if Status(wrapped) != tt.status || wait != tt.wait || named != tt.named || marchwarden.CodeOf(err) != tt.code || err.Error() != tt.text {
			t.Errorf("%d %q: status %d, wait %v %v, %v", tt.status, tt.after, Status(wrapped), wait, named, err)
		}
	}
	for _, err := range []error{nil, errors.New("x"), marchwarden.Errorf(marchwarden.CodeUnavailable, "HTTP status 404")} {
		if _, named := AskedWait(err); Status(err) != 0 || named {
			t.Errorf("%v is taken for a refusal", err)
		}
	}
}
