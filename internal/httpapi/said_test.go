package httpapi

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestSaidKeepsNothingDangerous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := "sk-" + rapid.StringMatching(`[a-zA-Z0-9]{8,40}`).Draw(t, "key")
		s := rapid.String().Draw(t, "a") + key + " Basic dXNlcjpwYTU1d29yZA== " + rapid.String().Draw(t, "b") + "\x1b[31m\u202e" + rapid.StringN(0, 400, -1).Draw(t, "c") + key
		got := Said(s, SecretsOf(key, "http://user:pa55word@x.example"))
		if strings.Contains(got, key) || strings.Contains(got, "dXNlcjpwYTU1d29yZA==") || strings.Contains(got, "pa55word") || utf8.RuneCountInString(got) > maxSaid || !utf8.ValidString(got) {
			t.Fatalf("%q", got)
		}
		for _, r := range got {
			if r != ' ' && !unicode.IsPrint(r) {
				t.Fatalf("%q has %U", got, r)
			}
		}
	})
}

// TestNoSecretComesBack: what a service was sent in confidence is in no answer, and
// what it says else is as it was.
func TestNoSecretComesBack(t *testing.T) {
	const key, password = "tvly-canary/1+2", "p@ss-canary"
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"title": "you sent %s", "url": "http://x/?k=%s&n=1", "n": 7}`, r.Header.Get("X-Key")+" "+r.Header.Get("Authorization"), url.QueryEscape(key))
	})
	s.Secrets, s.Header = []string{key}, http.Header{"X-Key": {key}}
	s.Base = strings.Replace(s.Base, "http://", "http://me:"+url.QueryEscape(password)+"@", 1)
	var got struct {
		Title, URL string
		N          int
	}
	if err := s.GetJSON(t.Context(), "find", nil, &got); err != nil || got.N != 7 || got.URL != "http://x/?k=REDACTED&n=1" {
		t.Errorf("%+v, %v", got, err)
	}
	if !strings.HasPrefix(got.Title, "you sent REDACTED Basic ") || strings.Contains(got.Title, base64.StdEncoding.EncodeToString([]byte("me:" + password))[4:]) {
		t.Errorf("%q", got.Title)
	}
}
