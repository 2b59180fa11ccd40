package markup

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// Document is a whole page.
type Document struct {
	Lang  string // of the page's own words, such as "en"
	Title string // one line
	// Style is the page's only style sheet. It is the program's own and part of its
	// source: it must not hold text from outside.
	Style string
	// Script is the page's only script, or "" for none. The same holds for it, and it
	// must not hold what ends a script in HTML.
	Script string
	Body   Node
}

// Policy is the content security policy of the page: the style sheet and the script,
// each known by its hash, and nothing else. The page can load, frame and send nothing,
// and run no other script.
func (d Document) Policy() string {
	script := ""
	if d.Script != "" {
		script = "script-src " + hashed(d.Script) + "; "
	}
	return "default-src 'none'; " + script + "style-src " + hashed(d.Style) + "; base-uri 'none'; form-action 'none'"
}

// hashed is a source by which a policy allows a text between two tags.
func hashed(text string) string {
	sum := sha256.Sum256([]byte(unixLines(text)))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// unixLines makes the line ends of a text what a reader of HTML makes of them before it
// takes the hash.
func unixLines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// String is the page as one file of HTML, with its policy inside.
func (d Document) String() string {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n<html lang=\"" + Text(d.Lang).html + "\">\n<head>\n<meta charset=\"utf-8\">\n")
	b.WriteString("<meta http-equiv=\"Content-Security-Policy\" content=\"" + policyEscapes.Replace(d.Policy()) + "\">\n")
	b.WriteString("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
	b.WriteString("<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n")
	b.WriteString("<title>" + Text(d.Title).html + "</title>\n<style>" + unixLines(d.Style) + "</style>\n</head>\n<body>\n")
	b.WriteString(d.Body.html)
	if d.Script != "" {
		b.WriteString("<script>" + unixLines(d.Script) + "</script>\n")
	}
	b.WriteString("</body>\n</html>\n")
	return b.String()
}

// policyEscapes leaves the apostrophes of a policy as people know them.
var policyEscapes = strings.NewReplacer("&", "&amp;", `"`, "&#34;", "<", "&lt;")
