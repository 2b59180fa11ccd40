package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// key has all that makes spellings differ.
const key = `sk-c4n/ry+K&y<"é%2`

func TestCounts(t *testing.T) {
	for value, want := range map[string]bool{
		"": false, "sk-1234": false, "sk-12345": true, "postgres": false, "password": false, "1234567890": false, "swordfish1": true,
		"correcthorsebattery": true, "0123456789012345": true, "é-23456": false, "é-234567": true,
	} {
		if counts(value) != want {
			t.Errorf("counts(%q) is %v", value, !want)
		}
	}
}

// spelt are the ways in which others write a value.
func spelt(t *testing.T, v string) map[string]string {
	t.Helper()
	plain, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{
		"as it is": v, "query": url.QueryEscape(v), "path": url.PathEscape(v), "twice": url.QueryEscape(url.QueryEscape(v)), "lower": lower(url.QueryEscape(v)),
		"address": (&url.URL{Scheme: "http", Host: "h", User: url.UserPassword("me", v)}).String(), "JSON": string(plain), "quoted": strconv.Quote(v), "HTML": html.EscapeString(v), "HTML twice": html.EscapeString(html.EscapeString(v)), "path in a query": url.QueryEscape(url.PathEscape(v)),
		"JSON in JSON": strconv.Quote(strconv.Quote(v)), "ASCII": strconv.QuoteToASCII(v), "address in JSON in HTML": html.EscapeString(strconv.Quote(url.QueryEscape(v))),
		"hex": hex.EncodeToString([]byte(v)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(v))),
	}
	for i, before := range []string{"", "u", "us", "user:"} {
		out[fmt.Sprint("base64 ", i)] = base64.StdEncoding.EncodeToString([]byte(before + v))
		out[fmt.Sprint("base64url ", i)] = base64.RawURLEncoding.EncodeToString([]byte(before + v + "&more"))
	}
	return out
}

// lower writes %2B as %2b.
func lower(s string) string {
	return regexp.MustCompile(`%[0-9A-F]{2}`).ReplaceAllStringFunc(s, strings.ToLower)
}

// TestEverySpelling hides a key in each way to write it, and leaves what is around.
func TestEverySpelling(t *testing.T) {
	for _, v := range []string{key, "tvly-canary-0123456789", "12-45678"} {
		r := New(v)
		for name, text := range spelt(t, v) {
			got := r.Text("before " + text + " after")
			if strings.Contains(got, v) || got == "before "+text+" after" || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
				t.Errorf("%s of %s: %q", name, v, got)
			}
		}
	}
}

// TestFormatsSurvive: what was base64, hexadecimal, JSON or an address is so after.
func TestFormatsSurvive(t *testing.T) {
	r := New(key)
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
		got, err := enc.DecodeString(r.Text(enc.EncodeToString([]byte("Basic user:" + key + "!!"))))
		if err != nil || !bytes.HasPrefix(got, []byte("Basic user:")) || bytes.Contains(got, []byte(key[2:len(key)-2])) {
			t.Errorf("%q, %v", got, err)
		}
	}
	if _, err := hex.DecodeString(r.Text(hex.EncodeToString([]byte("a" + key + "b")))); err != nil {
		t.Error(err)
	}
	if u, err := url.Parse(r.Text("http://h/p?api_key=" + url.QueryEscape(key) + "&q=1")); err != nil || u.Query().Get("api_key") != Mark || u.Query().Get("q") != "1" {
		t.Errorf("%v, %v", u, err)
	}
}

// TestEscapes: every character may be escaped, and what is no escape is none.
func TestEscapes(t *testing.T) {
	const v = `sk%25-a&b\1`
	every := func(format string) (out string) {
		for _, c := range []byte(v) {
			out += fmt.Sprintf(format, c)
		}
		return out
	}
	r := New(v)
	for in, want := range map[string]string{
		v: Mark, v + "x": Mark + "x", "sk%2525-a%26b%5C1": Mark, every("%%%02x"): Mark, every("%%25%02X"): Mark, every(`\u%04X`): Mark, every(`\\u%04x`): Mark, every("&#%d;"): Mark, every("&#x%x;"): Mark,
		`{"a":"` + every(`\u%04X`) + `","n":1.50}`: `{"a":"` + Mark + `","n":1.50}`,
		`sk%25-a&b\2`: `sk%25-a&b\2`,
		"sk%-a&b":     "sk%-a&b",
		`%&\%2&#\u00`: `%&\%2&#\u00`,
	} {
		if got := r.Text(in); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
}

// TestLeavesTheRest: without secrets, nothing is touched and nothing is copied.
func TestLeavesTheRest(t *testing.T) {
	b := []byte("a page about postgres and short")
	for _, r := range []*Redactor{nil, New(), New("postgres", "short", ""), New("some-other-key")} {
		if got := r.Bytes(b); &got[0] != &b[0] || r.Text(string(b)) != string(b) {
			t.Errorf("%q", got)
		}
	}
}

// TestOneInAnother takes the longer of two secrets that begin alike.
func TestOneInAnother(t *testing.T) {
	r := New("key-1234", "key-1234-and-more")
	if got := r.Text("key-1234-and-more key-1234 key-1234-and"); got != "REDACTED REDACTED REDACTED-and" {
		t.Error(got)
	}
	var out bytes.Buffer
	w := r.Writer(&out)
	for _, part := range []string{"key-1234", "-and-", "more", " key-1234"} {
		fmt.Fprint(w, part)
	}
	if err := w.Flush(); err != nil || out.String() != "REDACTED REDACTED" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// TestWriterInParts: however a text is cut into writes, the same comes out as of the
// whole, and no line waits for the next.
func TestWriterInParts(t *testing.T) {
	const v = "aab-aa%c1"
	forms := []string{v, url.QueryEscape(v), "%", `\`, "&", "&amp;", `\u0061`, html.EscapeString(v), "aab-aa%25", "c1", "aa", "aab-", "a", "aab-aa%c", "\n", " ", base64.StdEncoding.EncodeToString([]byte(v)), hex.EncodeToString([]byte(v)), "aab-aa%c1-more"}
	rapid.Check(t, func(t *rapid.T) {
		r := New(v, "aab-aa%c1-more", "c1-aab-a")
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom(forms)).Draw(t, "text"), "")
		var out bytes.Buffer
		w := r.Writer(&out)
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			if got, err := w.Write([]byte(rest[:n])); got != n || err != nil {
				t.Fatal(got, err)
			}
			if strings.HasSuffix(rest[:n], "\n") && !bytes.HasSuffix(out.Bytes(), []byte("\n")) {
				t.Fatalf("a line waits: %q", out.Bytes())
			}
			rest = rest[n:]
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r.Text(text), out.String()); diff != "" {
			t.Fatal(diff)
		}
		if strings.Contains(out.String(), v) {
			t.Fatalf("%q holds it", out.String())
		}
	})
}

// TestLearn: a writer knows what its redactor learns later, from any goroutine.
func TestLearn(t *testing.T) {
	var out bytes.Buffer
	r := New()
	w := r.Writer(&out)
	fmt.Fprint(w, "late-key-1\n")
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			r.Learn("late-key-1", fmt.Sprint("other-key-", i))
			fmt.Fprint(w, "late-key-1\n")
		})
	}
	all.Wait()
	if want := "late-key-1\n" + strings.Repeat(Mark+"\n", 4); out.String() != want || w.Unwrap() != &out {
		t.Errorf("%q", out.String())
	}
}

type broken struct{}

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestWriterTellsFaults(t *testing.T) {
	w := New("some-key-1").Writer(broken{})
	if _, err := w.Write([]byte("text\n")); !errors.Is(err, errBroken) {
		t.Error(err)
	}
	if _, err := w.Write([]byte("some-")); err != nil { // it waits
		t.Error(err)
	}
	if err := w.Flush(); !errors.Is(err, errBroken) {
		t.Error(err)
	}
}

func BenchmarkBytes(b *testing.B) {
	var keys []string
	for i := range 10 {
		keys = append(keys, fmt.Sprintf("sk-%d-canary-0123456789-abcdef", i))
	}
	r := New(keys...)
	for name, line := range map[string]string{
		"plain": "The remaining sections describe the setting of the study, sketched in the usual order. ", "escaped": `The \"remaining\" sections\ndescribe &amp; <a href=\"/a%20b\">tell<\/a> in order. `,
	} {
		page := bytes.Repeat([]byte(line), 1<<20/len(line))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(page)))
			for b.Loop() {
				r.Bytes(page)
			}
		})
	}
}
