package page

import (
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"golang.org/x/net/html"
)

// payloads are texts that want to be more than text.
var payloads = []string{
	`<script>alert(1)</script>`,
	`<img src=x onerror=alert(1)>`,
	`<svg/onload=alert(1)>`,
	`"><svg onload="alert(1)`,
	`' onmouseover='alert(1)' x='`,
	`" autofocus onfocus="alert(1)`,
	"` onclick=alert(1) `",
	`<a href="javascript:alert(1)">go</a>`,
	`javascript:alert(1)`,
	`JaVa	ScRiPt:alert(1)//https://x.example/`,
	`data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==`,
	`//evil.example/x`,
	`https://evil.example/pixel.png`,
	`https://evil.example/"onmouseover="alert(1)`,
	`../../../../evil?source=1#x`,
	`</mark></blockquote></article></main><iframe src=//evil.example></iframe>`,
	`</style><style>@import url(https://evil.example/x.css)</style>`,
	`</title><meta http-equiv=refresh content="0;url=https://evil.example/">`,
	`</textarea><form action=//evil.example><input name=csrf><button>`,
	`</script><base href=//evil.example>`,
	`--><link rel=stylesheet href=//evil.example><!--`,
	`<![CDATA[<object data=x>]]><embed src=//evil.example>`,
	`<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">`,
	`<template><img src=x onerror=alert(1)></template><noscript><img src=//evil.example></noscript>`,
	`{{template "frame"}} {{.CSRF}} ${x} <%= y %>`,
	"\u202Etxt.exe\u202C \u2066\u200B\uFEFF\u2029<b>",
	"nul\x00<scr\x00ipt>alert(1)</script> esc\x1b[31m \xff\xfe<img src=x>",
	`+ADw-script+AD4-alert(1)+ADw-/script+AD4-`,
	`&lt;script&gt;alert(1)&lt;/script&gt; &#60;img src=x&#62;`,
	`supported" style="background:url(//evil.example)`,
}

// plant puts s into every text of a view. Markup is left alone: it is not text from
// outside. It counts the places.
func plant(v reflect.Value, s string) int {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return 0
		}
		return plant(v.Elem(), s)
	case reflect.String:
		v.SetString(s)
		return 1
	case reflect.Slice:
		n := 0
		for i := range v.Len() {
			n += plant(v.Index(i), s)
		}
		return n
	case reflect.Map:
		if v.Type() == reflect.TypeFor[url.Values]() && v.Len() > 0 {
			v.Set(reflect.ValueOf(url.Values{s: {s}, "offset": {s}}))
			return 3
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[markup.Node]() {
			v.SetZero()
			return 0
		}
		n := 0
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				n += plant(v.Field(i), s)
			}
		}
		return n
	}
	return 0
}

// The words that pages are made of. What is not among them came from outside.
var (
	knownElements = strings.Fields("html head body meta title script link nav a header img ul li div button form input main p footer section h1 h2 h3 h4 strong span label textarea select option details summary fieldset legend b time mark meter article dl dt dd ol aside blockquote table caption thead tbody tr th td figure figcaption template kbd code noscript br search bdi ins del")
	knownAttrs    = strings.Fields("lang dir charset name content src rel type href class id tabindex aria-label aria-labelledby aria-describedby aria-current aria-hidden aria-invalid alt width height hidden role method action value rows required data-limit data-for open checked disabled inputmode autocomplete spellcheck datetime min max data-summary data-preview data-elapsed data-run data-source data-keys scope title download for placeholder enterkeyhint autofocus maxlength selected multiple accept")
	plainWords    = regexp.MustCompile(`^[a-z0-9_-]*( [a-z0-9_-]+)*$`)
)

// TestHostile plants every payload into every text of every view: what comes out has no
// element, no attribute and no address that a page does not have anyway.
func TestHostile(t *testing.T) {
	if len(payloads) < 17 {
		t.Fatal("too few payloads")
	}
	places, pages := 0, 0
	for _, payload := range payloads {
		for _, p := range typical() {
			places += plant(reflect.ValueOf(p.view), payload)
			page := p.render()
			pages++
			for _, n := range elements(t, page) {
				checkTame(t, fmt.Sprintf("%s with %q", p.name, payload), n)
			}
			if strings.Contains(payload, "evil.example/pixel") && p.name != "live-over" && !strings.Contains(string(page), "evil.example/pixel") {
				t.Errorf("%s does not show its texts", p.name)
			}
		}
	}
	t.Logf("%d payloads in %d places of %d pages", len(payloads), places, pages)
}

func checkTame(t *testing.T, where string, n *html.Node) {
	t.Helper()
	if !slices.Contains(knownElements, n.Data) {
		t.Errorf("%s: there is an element %s", where, n.Data)
	}
	for _, a := range n.Attr {
		if !slices.Contains(knownAttrs, a.Key) {
			t.Errorf("%s: <%s %s=%q>", where, n.Data, a.Key, a.Val)
		}
		switch a.Key {
		case "id", "class", "role", "rel", "type", "for", "aria-labelledby", "aria-describedby", "http-equiv", "data-source", "method":
			if !plainWords.MatchString(a.Val) && a.Val != "image/svg+xml" {
				t.Errorf("%s: <%s %s=%q>", where, n.Data, a.Key, a.Val)
			}
		case "src", "action", "data-run":
			if !ours(a.Val) {
				t.Errorf("%s: <%s %s=%q>", where, n.Data, a.Key, a.Val)
			}
		case "href":
			checkLink(t, where, n, a.Val)
		}
	}
	if n.Data == "script" && n.FirstChild != nil {
		t.Errorf("%s: a script has text", where)
	}
	if n.Data == "meta" {
		if name, _ := attr(n, "name"); name != "viewport" && name != "color-scheme" {
			if _, ok := attr(n, "charset"); !ok {
				t.Errorf("%s: a meta element %q", where, name)
			}
		}
	}
}

// ours reports whether an address is a path of this server, however a browser reads it.
func ours(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "" && u.Host == "" && strings.HasPrefix(address, "/") && !strings.HasPrefix(address, "//") && !strings.ContainsAny(address, "\\\t\r\n") && !strings.Contains(u.EscapedPath(), "/../")
}

func checkLink(t *testing.T, where string, n *html.Node, to string) {
	t.Helper()
	if strings.HasPrefix(to, "?") || strings.HasPrefix(to, "#") || ours(to) {
		return
	}
	rel, _ := attr(n, "rel")
	if u, err := url.Parse(to); n.Data != "a" || err != nil || u.Scheme != "https" && u.Scheme != "http" || rel != "noopener noreferrer nofollow" {
		t.Errorf("%s: <%s href=%q rel=%q>", where, n.Data, to, rel)
	}
}
