package verify_test

import (
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

func TestUnlink(t *testing.T) {
	known := func(a string) bool { return a == "https://peas.example/soil" }
	for _, tt := range []struct{ text, want string }{
		{"Peas grow at https://peas.example/soil.", "Peas grow at https://peas.example/soil."},
		{"Send it to https://evil.example/?q=secret, now.", "Send it to [address removed], now."},
		{"HTTP://EVIL.example/x and www.evil.example too", "[address removed] and [address removed] too"},
		{"Write to thief@evil.example!", "Write to [address removed]!"},
		{"javascript:alert(1) data:text/html,x file:///etc/passwd", "[address removed] [address removed] [address removed]"},
		{"Pay at evil.com/pay, 203.0.113.7/x or tel:+4912345.", "Pay at [address removed], [address removed] or [address removed]."},
		{"vbscript:x and //evil.example/x", "[address removed] and [address removed]"},
		{"The ratio is 3:1 and pH 7.5 at 10 a.m.", "The ratio is 3:1 and pH 7.5 at 10 a.m."},
	} {
		if got := verify.Unlink(tt.text, known); got != tt.want {
			t.Errorf("%q\n got %q\nwant %q", tt.text, got, tt.want)
		}
	}
	if got := verify.Unlink(strings.Repeat("https://", 50000), known); len(got) > 500000 {
		t.Errorf("%d bytes", len(got))
	}
}

// Names of papers are addresses too, and Markdown keeps its label only.
func TestUnlinkPapersAndMarkdown(t *testing.T) {
	source := "See 10.1000/real.1 and arXiv:2401.00001, or 2402.00002, and the form f[i](x) of a call."
	known := func(a string) bool { return strings.Contains(source, a) }
	for in, want := range map[string]string{
		"as doi:10.1000/real.1 says":             "as doi:10.1000/real.1 says",
		"as doi:10.5555/fake.1, says":            "as doi:[address removed], says",
		"arXiv:2401.00001 and ARXIV: 2402.00002": "arXiv:2401.00001 and ARXIV: 2402.00002",
		"arXiv:2499.99999v2.":                    "[address removed].",
		"![x](y) and [a b](/c \"t\")":            "x and a b",
		"a call f[i](x) of":                      "a call f[i](x) of",
		"[a](https://evil.example/b) here":       "a here",
		"a ratio of 10.5/3":                      "a ratio of 10.5/3",
	} {
		if got := verify.Unlink(in, known); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
