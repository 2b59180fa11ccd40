package scholar

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The hosts that papers count as being at, for source filters.
const (
	arxivHost = "arxiv.org"
	doiHost   = "doi.org"
)

// arxivDOI is how the DOIs begin that arXiv gives to its own papers.
const arxivDOI = "10.48550/arxiv."

// maxDOI is the longest DOI that is taken, in bytes.
const maxDOI = 200

// ID names a paper by its arXiv id or by its DOI. IDs are comparable, one paper
// has one ID of each kind whatever the spelling, and the DOI that arXiv gives to a
// paper is its arXiv id. The zero ID names nothing.
type ID struct {
	arxiv   string // "2401.01234" or "hep-th/9901001", without the version
	version int    // 0 is the newest
	doi     string // in lower case; "" when arxiv is set
}

var (
	arxivForm = regexp.MustCompile(`^(?i:arxiv:\s?)?([0-9]{4}\.[0-9]{4,5}|[a-z][a-z-]{1,16}(?:\.[A-Z]{2})?/[0-9]{7})(?:v([1-9][0-9]{0,2}))?$`)
	doiForm   = regexp.MustCompile(`^10\.[0-9]{4,9}/[!-~]+$`)
)

// ParseID reads an identifier as it is written in locators, texts and links:
//
//	arxiv:2401.01234v2  2401.01234  hep-th/9901001   https://arxiv.org/abs/2401.01234
//	doi:10.1038/X123    10.1038/x123                 https://doi.org/10.1038/x123
//	10.48550/arXiv.2401.01234                        the same as arxiv:2401.01234
//
// It is false for all else.
func ParseID(s string) (ID, bool) {
	s = strings.TrimSpace(s)
	if rest, ok := cutAddress(s); ok {
		s = rest
	}
	if len(s) >= 4 && strings.EqualFold(s[:4], "doi:") {
		s = strings.TrimSpace(s[4:])
	}
	if len(s) > len(arxivDOI) && strings.EqualFold(s[:len(arxivDOI)], arxivDOI) {
		s = s[len(arxivDOI):]
	}
	// A year and a month tell a new arXiv id from other numbers.
	if m := arxivForm.FindStringSubmatch(s); m != nil && (strings.Contains(m[1], "/") || m[1][2:4] >= "01" && m[1][2:4] <= "12") {
		version, _ := strconv.Atoi(m[2]) // "" and 0 are the newest; the form allows nothing else that fails
		return ID{arxiv: m[1], version: version}, true
	}
	if len(s) > maxDOI || !doiForm.MatchString(s) || strings.ContainsAny(s, "\"\\^`{|}?") {
		return ID{}, false
	}
	return ID{doi: strings.ToLower(s)}, true
}

// addressForms are the links to papers, up to the identifier.
var addressForms = regexp.MustCompile(`^(?i:https?://(?:(?:www\.|export\.)?arxiv\.org/(?:abs|pdf|html|format)/|(?:dx\.|www\.)?doi\.org/))`)

// cutAddress takes the identifier out of a link.
func cutAddress(s string) (string, bool) {
	prefix := addressForms.FindString(s)
	if prefix == "" {
		return "", false
	}
	rest, _, _ := strings.Cut(s[len(prefix):], "#")
	rest, _, _ = strings.Cut(rest, "?")
	rest, err := url.PathUnescape(rest)
	if err != nil {
		return "", false
	}
	if strings.Contains(strings.ToLower(prefix), "arxiv.org") {
		rest = strings.TrimSuffix(strings.TrimSuffix(rest, "/"), ".pdf")
	}
	return rest, true
}

// Locator is the written form, which ParseID reads: "arxiv:2401.01234", with the
// version where one was asked for, or "doi:10.1038/x123".
func (id ID) Locator() string {
	switch {
	case id.arxiv != "":
		return "arxiv:" + id.Versioned()
	case id.doi != "":
		return "doi:" + id.doi
	}
	return ""
}

// Versioned is the arXiv id with its version, where it has one, or "".
func (id ID) Versioned() string {
	if id.arxiv == "" || id.version == 0 {
		return id.arxiv
	}
	return id.arxiv + "v" + strconv.Itoa(id.version)
}

// Work is the ID without a version: what all versions have in common.
func (id ID) Work() ID { return ID{arxiv: id.arxiv, doi: id.doi} }

// Version is the version that was asked for; 0 is the newest.
func (id ID) Version() int { return id.version }

// ArXiv is the arXiv id without its version, or "".
func (id ID) ArXiv() string { return id.arxiv }

// DOI is the DOI in lower case; for an arXiv paper the one that arXiv gives it.
func (id ID) DOI() string {
	if id.arxiv != "" {
		return arxivDOI + strings.ToLower(id.arxiv)
	}
	return id.doi
}

// Host is the host that the paper counts as being at: arxiv.org or doi.org.
func (id ID) Host() string {
	if id.arxiv != "" {
		return arxivHost
	}
	return doiHost
}

// URL is the public address of the paper.
func (id ID) URL() string {
	u := url.URL{Scheme: "https", Host: doiHost, Path: "/" + id.doi}
	if id.arxiv != "" {
		u.Host, u.Path = arxivHost, "/abs/"+id.Versioned()
	}
	return u.String()
}

var (
	// named are identifiers that say what they are; bare is an arXiv id that does not.
	named = regexp.MustCompile(`(?i)\barxiv:\s?(?:[0-9]{4}\.[0-9]{4,5}|[a-z][a-z-]{1,16}(?:\.[a-z]{2})?/[0-9]{7})(?:v[1-9][0-9]{0,2})?\b` +
		`|\bhttps?://(?:(?:www\.|export\.)?arxiv\.org/(?:abs|pdf|html|format)|(?:dx\.|www\.)?doi\.org)/[^\s<>"'” ]+` +
		`|\b(?:doi:\s?)?10\.[0-9]{4,9}/[^\s<>"'” ]+`)
	bare = regexp.MustCompile(`(?:^|[\s(\["“])([0-9]{4}\.[0-9]{4,5}(?:v[1-9][0-9]{0,2})?)(?:$|[\s)\]"”,.;:?!])`)
)

// InText finds the papers that a text names, each once, in the order of the text:
// DOIs, links to papers, and arXiv ids that are called so ("arXiv:2401.01234").
func InText(text string) []ID {
	ids, _ := cutIDs(text)
	return ids
}

// bareIDs finds arXiv ids that stand in a text without a word on what they are.
// They may be other numbers.
func bareIDs(text string) []ID {
	var ids []ID
	for _, m := range bare.FindAllStringSubmatch(text, -1) {
		ids = appendID(ids, m[1])
	}
	return ids
}

// cutIDs is InText, and the text without the papers it names.
func cutIDs(text string) (ids []ID, rest string) {
	rest = named.ReplaceAllStringFunc(text, func(found string) string {
		ids = appendID(ids, withoutPunctuation(found))
		return " "
	})
	return ids, rest
}

func appendID(ids []ID, text string) []ID {
	if id, ok := ParseID(text); ok && !slices.Contains(ids, id) {
		ids = append(ids, id)
	}
	return ids
}

// withoutPunctuation is an identifier without what a sentence puts behind it; a
// bracket that it opened itself belongs to it.
func withoutPunctuation(s string) string {
	for {
		t := strings.TrimRight(s, ".,;:!?'*_")
		for _, pair := range []string{"()", "[]"} {
			if strings.HasSuffix(t, pair[1:]) && strings.Count(t, pair[1:]) > strings.Count(t, pair[:1]) {
				t = t[:len(t)-1]
			}
		}
		if t == s {
			return s
		}
		s = t
	}
}
