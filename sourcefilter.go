package marchwarden

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// SourceFilter restricts what is searched, fetched and cited. The zero filter
// allows everything.
type SourceFilter struct {
	entries []string // as written, in lower case and without a final dot
	hosts   []string // those that are allowed; none is all
	barred  []string // those that are excluded, without their "!"
}

// ParseSourceFilter reads a comma-separated list of domains or suffixes, such as
// ".gov,.edu,nasa.gov"; "!example.com" excludes. Blank text gives the zero filter. A domain
// in its own script is written in the ASCII form that URLs carry: "xn--bcher-kva.example".
func ParseSourceFilter(s string) (SourceFilter, error) {
	if strings.TrimSpace(s) == "" {
		return SourceFilter{}, nil
	}
	var f SourceFilter
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if strings.ContainsFunc(part, func(r rune) bool { return r >= utf8.RuneSelf }) {
			return SourceFilter{}, invalid("constraints.source_filter", "write a domain in its own script in the form that URLs carry, for example xn--bcher-kva.example",
				"must be ASCII, a domain in its own script written as xn--…, not %q", clip(part, 60))
		}
		e := strings.ToLower(part)
		name, bars := strings.CutPrefix(e, "!")
		if !isFilterEntry(name) {
			return SourceFilter{}, invalid("constraints.source_filter", "for example .gov,.edu,nasa.gov or !example.com",
				"must be comma-separated domains or suffixes, not %q", clip(part, 60))
		}
		f.entries = append(f.entries, strings.TrimSuffix(e, "."))
		if host := strings.TrimSuffix(name, "."); bars {
			f.barred = append(f.barred, host)
		} else {
			f.hosts = append(f.hosts, host)
		}
	}
	return f, nil
}

// isFilterEntry accepts letters, digits, dots, hyphens and underscores, with at least
// one letter or digit: what host names and file suffixes are made of.
func isFilterEntry(e string) bool {
	return strings.Trim(e, ".-_") != "" && !strings.Contains(e, "..") && strings.Trim(e, "abcdefghijklmnopqrstuvwxyz0123456789.-_") == ""
}

// Empty reports whether the filter allows everything.
func (f SourceFilter) Empty() bool { return len(f.entries) == 0 }

// Allows reports whether a source may be used. A name is a host in ASCII ("www.nasa.gov")
// or, for sources without one, a file name ("report.pdf"). The entry "nasa.gov"
// allows nasa.gov and every host below it, but not notnasa.gov; the entry ".gov"
// allows every name that ends in it. "!" before an entry excludes what it names, whatever
// else allows it. Case and one final dot do not matter.
//
//	filter ".gov,nasa.gov"   www.nasa.gov  yes    nasa.gov.example  no
//	filter "edu"             usu.edu       yes    edu.example.com   no
//	filter "!example.com"    usu.edu       yes    www.example.com   no
func (f SourceFilter) Allows(names ...string) bool {
	among := func(entries []string) bool {
		return slices.ContainsFunc(names, func(n string) bool {
			n = strings.ToLower(strings.TrimSuffix(n, "."))
			return n != "" && slices.ContainsFunc(entries, func(e string) bool {
				return n == e || strings.HasSuffix(n, "."+strings.TrimPrefix(e, "."))
			})
		})
	}
	return (len(f.hosts) == 0 || among(f.hosts)) && !among(f.barred)
}

// String is the filter in its wire form.
func (f SourceFilter) String() string { return strings.Join(f.entries, ",") }
