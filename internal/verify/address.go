package verify

import (
	"regexp"
	"strings"
)

var (
	// address is what a reader, or a renderer, would take for something to follow,
	// and the names by which papers are found: DOIs and arXiv ids.
	address = regexp.MustCompile(`(?i)\b(?:[a-z][a-z0-9+.-]{1,15}://|www\.|mailto:|javascript:|data:[a-z]+/)[^\s<>"']*|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|` +
		`\b10\.\d{4,9}/[^\s<>"']+|\barxiv:\s?(?:\d{4}\.\d{4,5}|[a-z.-]+/\d{7})(?:v\d+)?`)
	// link is Markdown that a renderer would link or load.
	link = regexp.MustCompile(`!?\[([^\[\]]*)\]\([^()]*\)`)
)

// Unlink takes out of a text every address that nothing in the run vouches for.
// A mind may have been told by a page to send readers somewhere; only addresses
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
		bare := strings.TrimRight(found, ".,;:!?)]}»”’")
		if bare != "" && (known(bare) || known(number(bare))) {
			return found
		}
		return "[address removed]" + found[len(bare):]
	})
}

// number is an arXiv id as a source may write it, without the prefix.
func number(id string) string {
	const prefix = "arxiv:"
	if len(id) > len(prefix) && strings.EqualFold(id[:len(prefix)], prefix) {
		return strings.TrimSpace(id[len(prefix):])
	}
	return id
}
