package hub

import (
	"bytes"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/secret"
)

// What the server says has no secret in it, however it is spelled.
func TestLogger(t *testing.T) {
	const between = "between hubs/9f2c"
	var to bytes.Buffer
	l := &logger{to: slog.New(slog.NewTextHandler(&to, nil)), known: secret.New(between)}
	encoded := base64.StdEncoding.EncodeToString([]byte("hub:" + between))
	for _, spelled := range []string{between, (&url.URL{Scheme: "nats-route", Host: "h:1", User: url.UserPassword("hub", between)}).String(), encoded} {
		to.Reset()
		l.Errorf("it said %s", spelled)
		l.Fatalf("it ended with %s", spelled)
		said := to.String() + l.fatal() + l.clean(errors.New(spelled)).Error()
		for _, part := range []string{"between", "9f2c", encoded[8:20]} {
			if strings.Contains(said, part) {
				t.Errorf("%q is in %s", part, said)
			}
		}
	}
}
