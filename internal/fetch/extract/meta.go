package extract

import (
	"cmp"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// Names of meta elements, best first. The same name may stand in name, property or itemprop.
var (
	titleNames  = []string{"og:title", "citation_title", "twitter:title", "dc.title", "dcterms.title"}
	authorNames = []string{"citation_author", "dc.creator", "dcterms.creator", "author", "article:author", "parsely-author", "sailthru.author", "byl"}
	dateNames   = []string{"article:published_time", "og:article:published_time", "datepublished", "citation_publication_date", "citation_online_date", "citation_date",
		"dc.date.issued", "dcterms.issued", "dcterms.created", "dc.date", "dcterms.date", "date", "pubdate", "publishdate", "publish_date", "publication_date",
		"parsely-pub-date", "sailthru.date", "article.published", "og:published_time", "rnews:datepublished", "cxenseparse:recs:publishtime"}
	pathDate = regexp.MustCompile(`/((?:19|20)\d\d)/(0[1-9]|1[0-2])/(0[1-9]|[12]\d|3[01])(?:/|$)`)
)

// pageMetadata reads what a page says about itself. It must see the tree before anything is removed.
func pageMetadata(root *html.Node, base *url.URL, doc *Document) {
	m := collectMeta(root)
	doc.Title = cmp.Or(first(m.named, titleNames...), m.title)
	doc.Author = cmp.Or(m.linked.author, notURL(first(m.named, authorNames...)))
	doc.URL = cmp.Or(absoluteURL(base, m.canonical), absoluteURL(base, m.named["og:url"]))
	var dates []string
	for i, name := range dateNames {
		if i == 3 {
			dates = append(dates, m.linked.published)
		}
		dates = append(dates, m.named[name])
	}
	dates = append(dates, m.time)
	if d := pathDate.FindStringSubmatch(doc.URL); d != nil {
		dates = append(dates, strings.Join(d[1:], "-"))
	}
	for _, date := range dates {
		doc.Published = cmp.Or(doc.Published, plaintext.Date(date))
	}
}

// bylinePrefix is what stands before the name in a line that names the author.
var bylinePrefix = regexp.MustCompile(`(?i)^\s*[^\pL]*(?:(?:written\s+|posted\s+|article\s+|artikel\s+)?by|von|par|por|di|door|autore?|author|auteur)(?:\s*:\s*|\s+)`)

// headingsUnder lists the text of the first headings that may be the title of a page.
func headingsUnder(root *html.Node) []string {
	var headings []string
	for n := range root.Descendants() {
		if (n.DataAtom == atom.H1 || n.DataAtom == atom.H2) && len(headings) < 20 {
			headings = append(headings, oneLine(htmlText(n), 500))
		}
	}
	return headings
}

// withoutSite cuts the site's name off a title such as "Growing Beans - Example Garden" when the page has the rest as a heading.
func withoutSite(title string, headings []string) string {
	title = oneLine(title, 500)
	for _, h := range headings {
		if len(h) < 8 || len(h) >= len(title) || !strings.EqualFold(title[:len(h)], h) {
			continue
		}
		if rest := title[len(h):]; strings.HasPrefix(rest, " ") && strings.IndexAny(strings.TrimSpace(rest), "-–—|»·•:") == 0 {
			return title[:len(h)]
		}
	}
	return title
}

// pageMeta is the raw material of pageMetadata; the first value of each name counts.
type pageMeta struct {
	named                  map[string]string
	title, canonical, time string
	linked                 struct{ author, published string } // from JSON-LD
}

func collectMeta(root *html.Node) pageMeta {
	m := pageMeta{named: make(map[string]string)}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.DataAtom {
		case atom.Title:
			if m.title == "" && n.Namespace == "" {
				m.title = htmlText(n)
			}
		case atom.Link:
			if m.canonical == "" && strings.EqualFold(attr(n, "rel"), "canonical") {
				m.canonical = attr(n, "href")
			}
		case atom.Meta:
			for _, key := range []string{"property", "name", "http-equiv"} {
				m.set(attr(n, key), attr(n, "content"))
			}
		case atom.Time:
			m.set(attr(n, "itemprop"), attr(n, "datetime"))
			if m.time == "" {
				m.time = plaintext.Date(attr(n, "datetime"))
			}
		case atom.Script:
			if n.FirstChild != nil && strings.Contains(attr(n, "type"), "ld+json") {
				var v any // of broken JSON, which is common, nothing
				if src := n.FirstChild.Data; len(src) <= 1<<20 && json.Unmarshal([]byte(src), &v) == nil {
					m.linkedItem(v, 0)
				}
			}
		}
		if prop := attr(n, "itemprop"); prop != "" {
			m.set(prop, attr(n, "content"))
		}
	}
	return m
}

// dublinCore brings the spellings of one vocabulary to one.
var dublinCore = strings.NewReplacer("dc:", "dc.", "dcterm:", "dcterms.", "dcterms:", "dcterms.", "dcterm.", "dcterms.")

// set notes the value under each of the names, which may be several apart by spaces.
func (m *pageMeta) set(names, value string) {
	if value = strings.TrimSpace(value); value == "" {
		return
	}
	for _, name := range strings.Fields(strings.ToLower(names)) {
		name = dublinCore.Replace(name)
		if old, ok := m.named[name]; !ok {
			m.named[name] = value
		} else if (name == "citation_author" || name == "dc.creator") && len(old) < 300 && !strings.Contains(old, value) {
			m.named[name] = old + ", " + value
		}
	}
}

// linkedItem takes author and date of the first item of JSON-LD that has them.
func (m *pageMeta) linkedItem(v any, depth int) {
	if depth > 4 {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			m.linkedItem(item, depth+1)
		}
	case map[string]any:
		if s, ok := v["datePublished"].(string); ok && m.linked.published == "" {
			m.linked.published = plaintext.Date(s)
		}
		if m.linked.author == "" {
			m.linked.author = strings.Join(linkedNames(v["author"]), ", ")
		}
		m.linkedItem(v["@graph"], depth+1)
	}
}

// linkedNames reads a JSON-LD author: a name, an object with a name, or a list of them.
func linkedNames(v any) []string {
	switch v := v.(type) {
	case string:
		if v = notURL(v); v != "" {
			return []string{v}
		}
	case map[string]any:
		if s, ok := v["name"].(string); ok && s != "" {
			return []string{s}
		}
	case []any:
		var names []string
		for _, item := range v {
			if _, list := item.([]any); !list && len(names) < 20 {
				names = append(names, linkedNames(item)...)
			}
		}
		return names
	}
	return nil
}

// describe takes a field of the outermost object, or an element of a Word document's properties, for metadata; the first of a name counts.
func describe(doc *Document, name, value string) {
	field := map[string]*string{
		"title": &doc.Title, "author": &doc.Author, "creator": &doc.Author, "url": &doc.URL,
		"date": &doc.Published, "published": &doc.Published, "published_at": &doc.Published, "created": &doc.Published,
	}[name]
	if field != nil {
		*field = cmp.Or(*field, value)
	}
}

// oneLine folds all white space and drops what does not belong in a label; a longer text than limit runes is no label and is cut.
func oneLine(s string, limit int) string {
	s = strings.Join(strings.Fields(normalise(s)), " ")
	if r := []rune(s); len(r) > limit {
		s = strings.TrimSpace(string(r[:limit]))
	}
	return s
}

func notURL(s string) string {
	if isURL(s) {
		return ""
	}
	return s
}

func attr(n *html.Node, key string) string { return attrOf(n.Attr, key) }

func attrOf(attrs []html.Attribute, key string) string {
	for _, a := range attrs {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// pageBase is the address that relative links of a page refer to, or nil.
func pageBase(root *html.Node, name string) *url.URL {
	var base *url.URL
	if isURL(name) {
		base, _ = url.Parse(name) // nil where it is none
	}
	if b := findElement(root, atom.Base); b != nil {
		if u, err := url.Parse(absoluteURL(base, attr(b, "href"))); err == nil && u.Host != "" {
			base = u
		}
	}
	return base
}

// absoluteURL resolves ref and returns it when it is an http or https address with a host, else "". The fragment is cut off.
func absoluteURL(base *url.URL, ref string) string {
	ref = strings.TrimSpace(ref)
	if ref == "" || strings.HasPrefix(ref, "#") || len(ref) > 4096 {
		return ""
	}
	u, err := url.Parse(ref)
	if err != nil {
		return ""
	}
	if base != nil {
		u = base.ResolveReference(u)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return ""
	}
	u.Fragment, u.RawFragment = "", ""
	return u.String()
}

func linksUnder(n *html.Node, base *url.URL) []string {
	var links []string
	for d := range n.Descendants() {
		if d.DataAtom == atom.A && len(links) < 4*maxLinks {
			if link := absoluteURL(base, attr(d, "href")); link != "" {
				links = append(links, link)
			}
		}
	}
	return links
}

var textURL = regexp.MustCompile(`https?://[^\s<>"'` + "`" + `{}|\\^\[\]]+`)

// linksInText finds addresses written out in running text; punctuation that ends the sentence is not part of them.
func linksInText(text string) []string {
	var links []string
	for _, s := range textURL.FindAllString(text, 4*maxLinks) {
		s = strings.TrimRight(s, ".,;:!?…")
		for strings.HasSuffix(s, ")") && strings.Count(s, ")") > strings.Count(s, "(") {
			s = strings.TrimRight(strings.TrimSuffix(s, ")"), ".,;:!?…")
		}
		links = append(links, s)
	}
	return links
}

// maxLinks bounds Document.Links.
const maxLinks = 200

func findElement(n *html.Node, a atom.Atom) *html.Node {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.DataAtom == a {
			return d
		}
	}
	return nil
}

func countElements(n *html.Node) int {
	count := 0
	for d := range n.Descendants() {
		if d.Type == html.ElementNode {
			count++
		}
	}
	return count
}
