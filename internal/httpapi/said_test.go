package httpapi

import (
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
