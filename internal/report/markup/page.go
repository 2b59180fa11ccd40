package markup

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// Document is a whole page. Its style sheet and its script, "" for none, are the
// program's own: they must not hold text from outside, nor what ends them in HTML.
type Document struct {
	Title         string // one line
	Style, Script string
	Body          Node
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

// unixLines makes the line ends of a text what a reader of HTML makes of them.
func unixLines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// String is the page as one file of HTML, with its policy inside.
func (d Document) String() string {
	script := If(d.Script != "", "<script>{}</script>\n", Node{unixLines(d.Script)})
	return Fill(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{}</title>
<style>{}</style>
</head>
<body>
{}{}</body>
</html>
`, Node{d.Policy()}, d.Title, Node{unixLines(d.Style)}, d.Body, script).html
}
