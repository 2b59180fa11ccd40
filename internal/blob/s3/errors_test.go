package s3

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/minio/minio-go/v7"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/blobtest"
)

// answering is a service that gives every request the same answer.
func answering(t *testing.T, status int, code, message string) Config {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>%s</Message></Error>", code, message)
	}))
	t.Cleanup(server.Close)
	return Config{Endpoint: strings.TrimPrefix(server.URL, "http://"), Plain: true, Bucket: "evidence", AccessKey: "test", SecretKey: secret, Region: "us-east-1", Timeout: 500 * time.Millisecond}
}

// What goes wrong has a code, a hint, and no secret.
func TestErrors(t *testing.T) {
	at := func(endpoint string) Config {
		return Config{Endpoint: endpoint, Plain: true, Bucket: "evidence", AccessKey: "test", SecretKey: secret, Region: "us-east-1", Timeout: 500 * time.Millisecond}
	}
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(silent.Close)
	for _, c := range []struct {
		name, says string
		config     Config
		code       marchwarden.Code
	}{
		{"no bucket", `no bucket "evidence"`, answering(t, 404, "NoSuchBucket", "no"), marchwarden.CodeUnavailable},
		{"wrong key", "refuses the key", answering(t, 403, "InvalidAccessKeyId", "no"), marchwarden.CodeDenied},
		{"wrong secret", "refuses the key", answering(t, 403, "SignatureDoesNotMatch", "you signed with "+secret), marchwarden.CodeDenied},
		{"denied", "refuses this", answering(t, 403, "AccessDenied", "no\x1b[2J"), marchwarden.CodeDenied},
		{"wrong clock", "the time of this machine", answering(t, 403, "RequestTimeTooSkewed", "no"), marchwarden.CodeDenied},
		{"failing", "failed", answering(t, 500, "InternalError", "no"), marchwarden.CodeUnavailable},
		{"no server there", "cannot be reached", at("127.0.0.1:1"), marchwarden.CodeUnavailable},
		{"silent", "no answer in 500ms", at(strings.TrimPrefix(silent.URL, "http://")), marchwarden.CodeUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			_, err := Open(t.Context(), c.config)
			// The last try may have failed of another cause than the time that ran out.
			if marchwarden.CodeOf(err) != c.code || err != nil && !strings.Contains(err.Error(), c.says) && !strings.Contains(err.Error(), "no answer in 500ms") {
				t.Errorf("Open: %v (code %s), want %q with code %s", err, marchwarden.CodeOf(err), c.says, c.code)
			}
			if err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\x1b")) {
				t.Errorf("the error shows too much: %q", err)
			}
			if c.name != "failing" && marchwarden.HintOf(err) == "" {
				t.Errorf("no hint with %v", err)
			}
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

// Asked of the client's error and not of a resolver, which is not ours.
func TestNoSuchHost(t *testing.T) {
	k := &keeper{secret: secret}
	err := k.explain(t.Context(), fmt.Errorf("get: %w", &net.DNSError{Name: "nowhere.example", Err: "no such host"}))
	if marchwarden.CodeOf(err) != marchwarden.CodeUnavailable || !strings.Contains(err.Error(), "nowhere.example") || marchwarden.HintOf(err) == "" {
		t.Errorf("explain: %v", err)
	}
}

// A service that repeats the secret key does so in vain, however it spells it, and wherever
// its answer is cut off.
func TestHushed(t *testing.T) {
	coded := base64.StdEncoding.EncodeToString([]byte(secret))
	for key, said := range map[string]string{
		secret:       "you signed with " + secret + ", or " + coded,
		"minioadmin": "you signed with minioadmin",
		"the-secret": strings.Repeat("x", 195) + "the-secret",
	} {
		k := &keeper{secret: key}
		err := k.explain(t.Context(), minio.ErrorResponse{StatusCode: 403, Code: "SignatureDoesNotMatch", Message: said})
		lost := k.explain(t.Context(), errors.New(said))
		for _, part := range []string{key, key[:5], coded[:8]} {
			if strings.Contains(err.Error()+lost.Error(), part) {
				t.Errorf("%q is in %v, or %v", part, err, lost)
			}
		}
	}
}

// A service that goes away is noticed by every call.
func TestServiceGone(t *testing.T) {
	config := memory(t)(t)
	config.Timeout = 300 * time.Millisecond
	_, s := opened(t, config)
	ref := blobtest.Put(t, s, []byte("a page"))
	config.Endpoint = "127.0.0.1:1"
	k, err := newKeeper(config)
	if err != nil {
		t.Fatal(err)
	}
	s = blob.Guard(k)
	_, getErr := s.Get(t.Context(), ref)
	_, putErr := s.Put(t.Context(), []byte("another"))
	_, statErr := s.Stat(t.Context(), ref)
	for call, err := range map[string]error{"Get": getErr, "Put": putErr, "Stat": statErr} {
		if marchwarden.CodeOf(err) != marchwarden.CodeUnavailable || errors.Is(err, blob.ErrNotFound) {
			t.Errorf("%s: %v, want CodeUnavailable", call, err)
		}
	}
}

func TestParseURL(t *testing.T) {
	for address, want := range map[string]Config{
		"s3://evidence":                                           {Bucket: "evidence"},
		"s3://evidence/team/a/?region=eu-west-1":                  {Bucket: "evidence", Prefix: "team/a", Region: "eu-west-1"},
		"s3://evidence?endpoint=https://s3.example.org":           {Bucket: "evidence", Endpoint: "s3.example.org"},
		"s3://evidence/p?endpoint=http%3A%2F%2F127.0.0.1%3A9000/": {Bucket: "evidence", Prefix: "p", Endpoint: "127.0.0.1:9000", Plain: true},
	} {
		got, err := ParseURL("blobs", address)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", address, err, diff)
		}
	}
	for _, address := range []string{
		"", "s3:", "s3://", "s3://ab", "s3://Evidence", "http://evidence", "s3://key:" + secret + "@evidence", "s3://evidence?secret_key=" + secret,
		"s3://evidence?endpoint=s3.example.org", "s3://evidence?endpoint=https://key:" + secret + "@host", "s3://evidence?endpoint=https://host/path", "s3://evidence?region=a&region=b",
		"s3://evidence/a/../b", "s3://evidence/a//b", "s3://evidence/%00", "s3://evidence#x",
	} {
		_, err := ParseURL("blobs", address)
		if marchwarden.CodeOf(err) != marchwarden.CodeInvalid || marchwarden.HintOf(err) == "" || err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestNoKeys(t *testing.T) {
	_, err := Open(t.Context(), Config{Bucket: "evidence"})
	if marchwarden.CodeOf(err) != marchwarden.CodeInvalid || !strings.Contains(marchwarden.HintOf(err), "AWS_SECRET_ACCESS_KEY") {
		t.Errorf("Open without keys: %v", err)
	}
}
