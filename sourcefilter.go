package marchwarden

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SourceFilter restricts what is searched, fetched and cited. The zero filter
// allows everything.
type SourceFilter struct {
	entries []string // as written, in lower case and without a final dot
	hosts   []string // those that are allowed, in the form that hosts are compared in; none is all
	barred  []string // those that are excluded, in the same form
}

// ParseSourceFilter reads a comma-separated list of domains or suffixes, such as
// ".gov,.edu,nasa.gov"; "!example.com" excludes. Blank text gives the zero filter. A domain may be written
// in its own script ("bücher.example") or in the ASCII form that URLs carry
// ("xn--bcher-kva.example"): both mean the same hosts.
func ParseSourceFilter(s string) (SourceFilter, error) {
	if strings.TrimSpace(s) == "" {
		return SourceFilter{}, nil
	}
	var f SourceFilter
	for part := range strings.SplitSeq(s, ",") {
		e := strings.ToLower(strings.TrimSpace(part))
		name, bars := strings.CutPrefix(e, "!")
		if !isFilterEntry(name) {
			return SourceFilter{}, invalid("constraints.source_filter", "for example .gov,.edu,nasa.gov or !example.com",
				"must be comma-separated domains or suffixes, not %q", clip(part, 60))
		}
		f.entries = append(f.entries, strings.TrimSuffix(e, "."))
		if host := asciiHost(strings.TrimSuffix(name, ".")); bars {
			f.barred = append(f.barred, host)
		} else {
			f.hosts = append(f.hosts, host)
		}
	}
	return f, nil
}

// isFilterEntry accepts letters and digits of any script, dots, hyphens and
// underscores, with at least one letter or digit: what host names and file
// suffixes are made of.
func isFilterEntry(e string) bool {
	if strings.Trim(e, ".-_") == "" || strings.Contains(e, "..") {
		return false
	}
	return !strings.ContainsFunc(e, func(r rune) bool {
		return r == utf8.RuneError || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && !strings.ContainsRune(".-_", r)
	})
}

// Empty reports whether the filter allows everything.
func (f SourceFilter) Empty() bool { return len(f.entries) == 0 }

// Allows reports whether a source may be used. A name is a host ("www.nasa.gov")
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
			n = asciiHost(strings.ToLower(strings.TrimSuffix(n, ".")))
			return n != "" && slices.ContainsFunc(entries, func(e string) bool {
				return n == e || strings.HasSuffix(n, "."+strings.TrimPrefix(e, "."))
			})
		})
	}
	return (len(f.hosts) == 0 || among(f.hosts)) && !among(f.barred)
}

// String is the filter in its wire form.
func (f SourceFilter) String() string { return strings.Join(f.entries, ",") }

// asciiHost writes every label that is not ASCII as "xn--" and its Punycode
// (RFC 3492), so that a name has one spelling. It maps case and nothing else;
// a name that needs more to match does not match, which keeps a source out. A
// label that is too long for a host is part of a file name and stays as it is.
func asciiHost(name string) string {
	const longest = 63
	labels := strings.Split(name, ".")
	for i, l := range labels {
		if len(l) <= longest*utf8.UTFMax && strings.ContainsFunc(l, func(r rune) bool { return r >= utf8.RuneSelf }) {
			labels[i] = "xn--" + punycode([]rune(l))
		}
	}
	return strings.Join(labels, ".")
}

// punycode encodes one label: its ASCII characters, a hyphen, then for each other
// character in ascending order how far the decoder's state moves to insert it.
func punycode(label []rune) string {
	var out []byte
	for _, r := range label {
		if r < utf8.RuneSelf {
			out = append(out, byte(r))
		}
	}
	basic := len(out)
	if basic > 0 {
		out = append(out, '-')
	}
	n, delta, bias := rune(utf8.RuneSelf), 0, 72
	for done := basic; done < len(label); n++ {
		next := rune(unicode.MaxRune)
		for _, r := range label {
			if r >= n {
				next = min(next, r)
			}
		}
		delta += int(next-n) * (done + 1)
		n = next
		for _, r := range label {
			if r < n {
				delta++
			}
			if r == n {
				out = appendDelta(out, delta, bias)
				bias = adaptBias(delta, done+1, done == basic)
				delta = 0
				done++
			}
		}
		delta++
	}
	return string(out)
}

// The parameters of Punycode.
const (
	punyBase, punyMin, punyMax = 36, 1, 26
	punySkew, punyDamp         = 38, 700
)

// appendDelta writes a delta as a number of variable length, base 36.
func appendDelta(out []byte, delta, bias int) []byte {
	const digits = "abcdefghijklmnopqrstuvwxyz0123456789"
	for k := punyBase; ; k += punyBase {
		t := min(max(k-bias, punyMin), punyMax)
		if delta < t {
			return append(out, digits[delta])
		}
		out = append(out, digits[t+(delta-t)%(punyBase-t)])
		delta = (delta - t) / (punyBase - t)
	}
}

// adaptBias is the next bias after a delta was written.
func adaptBias(delta, points int, first bool) int {
	if first {
		delta /= punyDamp
	} else {
		delta /= 2
	}
	delta += delta / points
	k := 0
	for ; delta > (punyBase-punyMin)*punyMax/2; k += punyBase {
		delta /= punyBase - punyMin
	}
	return k + (punyBase-punyMin+1)*delta/(delta+punySkew)
}
