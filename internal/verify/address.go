package verify

import (
	"regexp"
	"strings"
)

var (
	// address is what a reader, a renderer or a program could follow: URLs with or
	// without a scheme, hosts, mail and numeric addresses, and the names by which
	// papers are found, DOIs and arXiv ids.
	address = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]{1,20}://[^\s<>"']*|\b(?:javascript|vbscript|mailto|file|tel):[^\s<>"']+|\bdata:[a-z]+/[^\s<>"']*|\bwww\.[^\s<>"']*|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|` +
		`(?:\b|//)(?:[a-z0-9-]+\.)+[a-z]{2,24}(?::\d+)?/[^\s<>"']*|\b(?:[a-z0-9-]+\.)+(?:com|org|net|io|info|biz|example|invalid|test|local|internal|onion|app|dev|ai|co|me|xyz|top|site|online|ru|cn|uk|de)\b|` +
		`\b\d{1,3}(?:\.\d{1,3}){3}\b[^\s<>"']*|` +
		`\b10\.\d{4,9}/[^\s<>"']+|\barxiv:\s?(?:\d{4}\.\d{4,5}|[a-z.-]+/\d{7})(?:v\d+)?`)
	// link is Markdown that a renderer would link or load.
	link = regexp.MustCompile(`!?\[([^\[\]]*)\]\([^()]*\)`)
)

// Removed stands where an address was.
const Removed = "[address removed]"

// Unlink takes out of a text every address that nothing in the run vouches for.
// A reasoner may have been told by a page to send readers somewhere; only addresses
// that a source really holds stay. Of a link or an image in Markdown the label
// stays. known is asked for each, without the punctuation that a sentence puts
// behind it.
func Unlink(text string, known func(address string) bool) string {
	text = link.ReplaceAllStringFunc(text, func(found string) string {
		if known(found) { // the source itself writes so
			return found
		}
		return link.FindStringSubmatch(found)[1]
	})
	return address.ReplaceAllStringFunc(text, func(found string) string {
		bare := withoutPunctuation(found)
		if bare != "" && (known(bare) || known(number(bare))) {
			return found
		}
		return Removed + found[len(bare):]
	})
}

// withoutPunctuation is an address without what a sentence puts behind it; a
// bracket that the address itself opened belongs to it.
func withoutPunctuation(s string) string {
	for {
		t := strings.TrimRight(s, ".,;:!?]}»”’")
		if strings.Count(t, ")") > strings.Count(t, "(") {
			t = strings.TrimSuffix(t, ")")
		}
		if t == s {
			return s
		}
		s = t
	}
}

// number is an arXiv id as a source may write it, without the prefix.
func number(id string) string {
	const prefix = "arxiv:"
	if len(id) > len(prefix) && strings.EqualFold(id[:len(prefix)], prefix) {
		return strings.TrimSpace(id[len(prefix):])
	}
	return id
}
