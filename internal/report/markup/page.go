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
	Body  Node
}

// Policy is the content security policy of the page: the style sheet, known by its
// hash, and nothing else. The page can load, run, frame and send nothing.
func (d Document) Policy() string {
	sum := sha256.Sum256([]byte(d.Style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}

// String is the page as one file of HTML, with its policy inside.
func (d Document) String() string {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n<html lang=\"" + Text(d.Lang).html + "\">\n<head>\n<meta charset=\"utf-8\">\n")
	b.WriteString("<meta http-equiv=\"Content-Security-Policy\" content=\"" + policyEscapes.Replace(d.Policy()) + "\">\n")
	b.WriteString("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
	b.WriteString("<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n")
	b.WriteString("<title>" + Text(d.Title).html + "</title>\n<style>" + d.Style + "</style>\n</head>\n<body>\n")
	b.WriteString(d.Body.html)
	b.WriteString("</body>\n</html>\n")
	return b.String()
}

// policyEscapes leaves the apostrophes of a policy as people know them.
var policyEscapes = strings.NewReplacer("&", "&amp;", `"`, "&#34;", "<", "&lt;")
