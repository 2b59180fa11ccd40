package locator

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
)

func TestCanonical(t *testing.T) {
	for raw, want := range map[string]string{
		"http://example.org":                                      "http://example.org/",
		"HTTPS://WWW.Example.ORG:443/A?b=C#frag":                  "https://www.example.org/A?b=C",
		"http://example.org:80?x":                                 "http://example.org/?x",
		"http://example.org:0443/":                                "http://example.org:443/",
		"http://example.org:/":                                    "http://example.org/",
		"https://example.org./a":                                  "https://example.org/a",
		"https://example.org/a?":                                  "https://example.org/a",
		"https://example.org/#x":                                  "https://example.org/",
		"https://example.org/?utm_source=x&b=2&gclid=1&a=1":       "https://example.org/?b=2&a=1",
		"https://example.org/?UTM_Medium=x&%75tm_term=y":          "https://example.org/",
		"https://example.org/?fbclid=1&mc_eid=2&msclkid=3":        "https://example.org/",
		"https://example.org/?a=1&&a=0&":                          "https://example.org/?a=1&a=0",
		"https://example.org/?q=a+b%20c&r=%e4%b8%ad":              "https://example.org/?q=a+b%20c&r=%E4%B8%AD",
		"https://example.org/?q=100%&r=%zz":                       "https://example.org/?q=100%25&r=%25zz",
		"https://example.org/a%2fb%2Fc":                           "https://example.org/a%2Fb%2Fc",
		"https://example.org/%7euser/%41":                         "https://example.org/~user/A",
		"https://example.org/a/../b/./c/%2e%2E/d":                 "https://example.org/b/d",
		"https://example.org/../..":                               "https://example.org/",
		"https://example.org/a/..":                                "https://example.org/",
		"https://example.org/a/.":                                 "https://example.org/a/",
		"https://example.org//a//b":                               "https://example.org//a//b",
		"https://example.org/\u4e2d\u6587?q=\u00e9":               "https://example.org/%E4%B8%AD%E6%96%87?q=%C3%A9",
		"https://example.org/a%252Fb":                             "https://example.org/a%252Fb",
		"https://b\u00fccher.example/":                            "https://xn--bcher-kva.example/",
		"https://XN--BCHER-KVA.example/":                          "https://xn--bcher-kva.example/",
		"https://r3---sn-x_y.example.org/":                        "https://r3---sn-x_y.example.org/",
		"http://[2606:4700:0:0::1]:80/":                           "http://[2606:4700::1]/",
		"http://[::FFFF:127.0.0.1]/":                              "http://[::ffff:127.0.0.1]/",
		"http://127.0.0.1.:8080/":                                 "http://127.0.0.1:8080/",
		"http://\u2460\u2461\u2466.\u24ea.\u24ea.\u2460/":         "http://127.0.0.1/",
		"http://127\u30020\u30020\u30021/":                        "http://127.0.0.1/",
		"http://localhost/":                                       "http://localhost/",
		"https://en.wikipedia.org/wiki/Foo_(bar)":                 "https://en.wikipedia.org/wiki/Foo_(bar)",
		"https://example.org/" + strings.Repeat("a", MaxBytes-20): "https://example.org/" + strings.Repeat("a", MaxBytes-20),

		"": "", "example.org": "", "//example.org/": "", "/a": "", "ftp://example.org/": "", "file:///etc/passwd": "", "gopher://x/": "",
		"javascript:alert(1)": "", "http:": "", "http:example.org": "", "http:/example.org": "", "http:///example.org": "", "http://": "", "http://:80/": "",
		"http://user@example.org/": "", "http://user:pw@example.org/": "", "http://@example.org/": "", "http://a@b@example.org/": "",
		"http://example.org\\@evil.example/": "", "http:\\\\example.org": "", "http://example.org/a\\b": "",
		"http://exa mple.org/": "", " http://example.org/": "", "http://example.org/ ": "", "http://exa\tmple.org/": "", "http://example.org/\r\nX: y": "",
		"http://example.org/\u00a0": "", "http://example.org/\x00": "", "http://example.org/\u0085": "", "http://example.org/\xff": "",
		"http://example.org:0/": "", "http://example.org:65536/": "", "http://example.org:99999999999/": "", "http://example.org:a/": "", "http://example.org:-1/": "",
		"http://example..org/": "", "http://.example.org/": "", "http://example.org../": "", "http://.": "", "http://exa%6dple.org/": "", "http://%E4%B8%AD.org/": "",
		"http://[fe80::1%25lo]/": "", "http://[fe80::1%lo]/": "", "http://[127.0.0.1]/": "", "http://[::1": "", "http://::1/": "",
		"http://2130706433/": "", "http://127.1/": "", "http://0x7f000001/": "", "http://0x7f.1/": "", "http://0177.0.0.1/": "", "http://017700000001/": "", "http://0/": "",
		"http://256.0.0.1/": "", "http://1.2.3.4.5/": "", "http://example.0x/": "", "http://exa!mple.org/": "", "http://exa<mple.org/": "",
		"http://" + strings.Repeat("a", 64) + ".org/":                 "",
		"http://" + strings.Repeat("a.", 127) + "org/":                "",
		"https://example.org/" + strings.Repeat("a", MaxBytes-19):     "",
		"https://example.org/" + strings.Repeat("\u00e9", MaxBytes/4): "",
	} {
		got, ok := Canonical(raw)
		if got != want || ok != (want != "") {
			t.Errorf("Canonical(%.80q) = %.80q, %v; want %.80q", raw, got, ok, want)
		}
	}
}

func TestFollowableKeepsTrackingParameters(t *testing.T) {
	const in, want = "https://Example.org/?utm_source=x&a=1#f", "https://example.org/?utm_source=x&a=1"
	if got, ok := Followable(in); got != want || !ok {
		t.Errorf("Followable(%q) = %q, %v", in, got, ok)
	}
	if got, ok := Followable("http://user@example.org/"); ok {
		t.Errorf("a user name passed: %q", got)
	}
}

func TestHost(t *testing.T) {
	for loc, want := range map[string]string{
		"https://WWW.Example.org:8443/a": "www.example.org", "http://[::1]:80/": "::1", "https://b\u00fccher.example/": "xn--bcher-kva.example",
		"embedded:soils.md": "", "/tmp/a.md": "", "": "", "http://u@example.org/": "",
	} {
		if got := Host(loc); got != want {
			t.Errorf("Host(%q) = %q, want %q", loc, got, want)
		}
	}
}

func TestInText(t *testing.T) {
	for text, want := range map[string][]string{
		"read https://example.org/a, then https://example.org/b.":                                 {"https://example.org/a", "https://example.org/b"},
		"(see https://en.wikipedia.org/wiki/Foo_(bar)).":                                          {"https://en.wikipedia.org/wiki/Foo_(bar)"},
		"[a](http://example.org/x)[b](http://example.org/y), <http://example.org/z>":              {"http://example.org/x", "http://example.org/y", "http://example.org/z"},
		"HTTP://EXAMPLE.org/ and http://example.org/#top are one":                                 {"http://example.org/"},
		"\u201chttps://example.org/q\u201d or 'https://example.org/r' or `https://example.org/s`": {"https://example.org/q", "https://example.org/r", "https://example.org/s"},
		"\u89c1https://example.org/a\u3002\u7136\u540e":                                           {"https://example.org/a"},
		"\u89c1 https://example.org/a\u3002\u7136\u540e":                                          {"https://example.org/a"},
		"**https://example.org/bold** https://example.org/?a=1&utm_source=t!":                     {"https://example.org/bold", "https://example.org/?a=1"},
		"xhttp://example.org/ http:// https://user:pw@example.org/ ftp://example.org/":            nil,
		"URL:https://example.org/u":                                                               {"https://example.org/u"},
		"no address at all, not even example.org":                                                 nil,
		"http://http://example.org/":                                                              {"http://http//example.org/"}, // as browsers read it
	} {
		if diff := cmp.Diff(want, InText(text)); diff != "" {
			t.Errorf("InText(%q) (-want +got):\n%s", text, diff)
		}
	}
}

// checkCanonical holds what is accepted against the promises of Canonical.
func checkCanonical(t *testing.T, raw string) {
	t.Helper()
	loc, ok := Canonical(raw)
	if !ok {
		return
	}
	if again, ok := Canonical(loc); !ok || again != loc {
		t.Errorf("Canonical(%q) = %q, but of that it is %q, %v", raw, loc, again, ok)
	}
	before, err := url.Parse(raw)
	if err != nil {
		t.Fatalf("Canonical took %q, net/url does not: %v", raw, err)
	}
	after, err := url.Parse(loc)
	if err != nil {
		t.Fatalf("Canonical(%q) = %q: %v", raw, loc, err)
	}
	written, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(loc, "https://"), "http://"), "/")
	if after.Host != written || after.User != nil || after.Fragment != "" || after.Scheme != strings.ToLower(before.Scheme) || !strings.HasPrefix(after.Path, "/") {
		t.Errorf("Canonical(%q) = %q, which net/url reads as %#v", raw, loc, after)
	}
	// What the client sends is what is written.
	if got := after.Scheme + "://" + after.Host + after.RequestURI(); got != loc {
		t.Errorf("Canonical(%q) = %q, which is sent as %q", raw, loc, got)
	}
	if Host(raw) == "" || Host(raw) != after.Hostname() {
		t.Errorf("Host(%q) = %q, want %q", raw, Host(raw), after.Hostname())
	}
}

func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{
		"http://example.org:80/a/../b?utm_source=1&c=%zz#d", "https://b\u00fccher.example./%7e%2f", "http://[::1]:8080/", "http://\u2460\u2461\u2466.\u24ea.\u24ea.\u2460/",
		"http://a\\@b/", "http://a%2eb/", "http://1.1/", "http://xn--a/", "https://e.org/?a=1&&b=2;c=3",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		checkCanonical(t, raw)
		for _, loc := range InText(raw) {
			if again, ok := Canonical(loc); !ok || again != loc {
				t.Errorf("InText(%q) found %q, which is not canonical", raw, loc)
			}
		}
	})
}

// TestPublicURLTests holds Canonical against the URL tests of the web platform:
// what it accepts has the host that browsers see.
func TestPublicURLTests(t *testing.T) {
	accepted, refused := 0, 0
	for _, test := range urlTests(t) {
		checkCanonical(t, test.Input)
		got, ok := Canonical(test.Input)
		if !ok {
			refused++
			continue
		}
		accepted++
		u, err := url.Parse(got)
		if err != nil {
			t.Fatal(err)
		}
		if test.Failure || u.Hostname() != strings.Trim(strings.TrimSuffix(test.Hostname, "."), "[]") && !sameIPv6(u.Hostname(), test.Hostname) {
			t.Errorf("Canonical(%q) = %q; browsers: failure %v, host %q", test.Input, got, test.Failure, test.Hostname)
		}
	}
	t.Logf("%d accepted, %d refused", accepted, refused)
	if accepted < 80 {
		t.Errorf("only %d addresses accepted", accepted)
	}
}

// sameIPv6 compares addresses that differ in how IPv4 inside IPv6 is written.
func sameIPv6(a, b string) bool {
	x, okX := canonicalHost(a, true)
	y, okY := canonicalHost(strings.Trim(b, "[]"), true)
	return okX && okY && x == y
}

type urlTest struct {
	Input    string
	Failure  bool
	Hostname string
}

// urlTests reads public test data that lies beside the repository; without it
// the test is skipped.
func urlTests(t *testing.T) []urlTest {
	t.Helper()
	file := datatest.Files(t, "hostile/parsers.tar.gz", func(name string) bool { return strings.HasSuffix(name, "/urltestdata.json") })
	var items []json.RawMessage
	if err := json.Unmarshal(file[0].Data, &items); err != nil {
		t.Fatal(err)
	}
	var tests []urlTest
	for _, item := range items {
		var test urlTest
		if item[0] == '{' { // strings in between are comments
			if err := json.Unmarshal(item, &test); err != nil {
				t.Fatal(err)
			}
			tests = append(tests, test)
		}
	}
	return tests
}
