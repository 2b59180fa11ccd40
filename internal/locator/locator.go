// Package locator owns the one written form of a web address, so that two spellings of a page are
// one page, and so that every later reader of the address (the provenance gate, robots.txt, the
// dialler, a person) sees the same host in it. It reads addresses strictly: where browsers and
// libraries are known to disagree, there is no locator.
//
// It does not resolve names, open connections or decide which hosts may be
// fetched; that is package guard's work.
package locator

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// MaxBytes is the longest address that is taken, written canonically or not.
const MaxBytes = 8 << 10

// Canonical gives the one form of an absolute http or https address:
//
//   - scheme and host in lower case, the host as ASCII (IDNA), without a final dot
//   - no default port, no fragment, no tracking parameters (utm_*, gclid, fbclid…)
//   - "." and ".." resolved in the path, an empty path written "/"
//   - percent-encoding in upper case, and only where it is needed
//   - the parameters of the query otherwise as they are, in their order
//
// It is false for all else: other schemes, no host, user names and passwords,
// backslashes, control characters, white space, ports out of range, IPv6 zones,
// and hosts that some readers take for a number (2130706433, 0x7f.1). What is
// returned is canonical itself, and net/url finds in it the host that is written.
func Canonical(raw string) (string, bool) { return normalise(raw, true) }

// Followable is Canonical for the target of a redirect: tracking parameters stay, because a server
// that adds one and gets it dropped would send us in a circle.
func Followable(raw string) (string, bool) { return normalise(raw, false) }

// Host is the host of an address in lower case, without port and brackets, or "" if it is refused.
func Host(loc string) string {
	canonical, ok := Canonical(loc)
	if u, err := url.Parse(canonical); ok && err == nil {
		return u.Hostname()
	}
	return ""
}

func normalise(raw string, dropTracking bool) (string, bool) {
	if len(raw) > MaxBytes || !utf8.ValidString(raw) || strings.ContainsFunc(raw, forbidden) {
		return "", false
	}
	// net/url has the last word, so that nothing passes that the HTTP client would read in another way.
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Opaque != "" {
		return "", false
	}
	rest, ok := strings.CutPrefix(raw[len(u.Scheme)+1:], "//")
	if !ok {
		return "", false
	}
	rest, _, _ = strings.Cut(rest, "#")
	rest, query, _ := strings.Cut(rest, "?")
	authority, path := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	host, ok := canonicalAuthority(u, authority)
	if !ok {
		return "", false
	}
	out := u.Scheme + "://" + host + resolveDots(escape(path, pathBytes))
	if query = escape(canonicalQuery(query, dropTracking), queryBytes); query != "" {
		out += "?" + query
	}
	if len(out) > MaxBytes {
		return "", false
	}
	return out, true
}

// forbidden are characters that readers strip, encode or end the address at, as they like.
func forbidden(r rune) bool {
	return r == '\\' || unicode.IsControl(r) || unicode.IsSpace(r) || r == utf8.RuneError
}

// canonicalAuthority writes host and port. An escape in a host is refused: it is
// never needed, and readers differ on whether to decode it before looking.
func canonicalAuthority(u *url.URL, authority string) (string, bool) {
	if strings.ContainsAny(authority, "%@") || authority != u.Host {
		return "", false
	}
	host, ok := canonicalHost(u.Hostname(), strings.HasPrefix(u.Host, "["))
	if !ok {
		return "", false
	}
	port := u.Port()
	if port == "" {
		return host, true
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", false
	}
	if u.Scheme == "http" && n == 80 || u.Scheme == "https" && n == 443 {
		return host, true
	}
	return host + ":" + strconv.FormatUint(n, 10), true
}

// names maps a host for lookup as browsers do, but leaves it to canonicalHost which ASCII
// characters a host may have: underscores and double hyphens are in use.
var names = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.Transitional(false), idna.StrictDomainName(false), idna.CheckHyphens(false))

func canonicalHost(host string, bracketed bool) (string, bool) {
	if bracketed {
		addr, err := netip.ParseAddr(host)
		if err != nil || !addr.Is6() || addr.Zone() != "" {
			return "", false
		}
		return "[" + addr.String() + "]", true
	}
	if len(host) > 1<<10 { // no host so long has a valid ASCII form, and mapping takes quadratic time
		return "", false
	}
	host, err := names.ToASCII(host)
	if err != nil {
		return "", false
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	labels := strings.Split(host, ".")
	if len(host) > 253 {
		return "", false
	}
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.Trim(label, hostBytes) != "" {
			return "", false
		}
	}
	// Readers differ on 127.1, 0177.0.0.1 and 2130706433: some see a name, some an
	// address. Only the plain dotted form is the same to all.
	if numeric(labels[len(labels)-1]) {
		addr, err := netip.ParseAddr(host)
		return host, err == nil && addr.Is4()
	}
	return host, true
}

const hostBytes = "abcdefghijklmnopqrstuvwxyz0123456789-_"

// numeric reports whether a host that ends in this label is an address to some reader.
func numeric(label string) bool {
	if digits, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// resolveDots removes "." and ".." segments; escaped dots were written out before.
func resolveDots(path string) string {
	if path == "" {
		return "/"
	}
	segments := strings.Split(path[1:], "/")
	kept := segments[:0]
	for i, segment := range segments {
		last := i == len(segments)-1
		switch segment {
		case "..":
			kept = kept[:max(len(kept)-1, 0)]
		case ".":
		default:
			kept = append(kept, segment)
			continue
		}
		if last {
			kept = append(kept, "")
		}
	}
	return "/" + strings.Join(kept, "/")
}

const (
	unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
	pathBytes  = "!$&'()*+,;=:@[]/"
	queryBytes = pathBytes + "?"
)

// escape brings percent-encoding into one form: unreserved characters are written out, those in
// plain and escapes of reserved ones stay as they are, all else is escaped.
func escape(s, plain string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' {
			if v, err := strconv.ParseUint(s[i+1:min(i+3, len(s))], 16, 8); err == nil && i+2 < len(s) {
				i += 2
				if strings.IndexByte(unreserved, byte(v)) >= 0 {
					b.WriteByte(byte(v))
				} else {
					b.Write([]byte{'%', hex[v>>4], hex[v&15]})
				}
				continue
			}
		} else if strings.IndexByte(unreserved, c) >= 0 || strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.Write([]byte{'%', hex[c>>4], hex[c&15]})
	}
	return b.String()
}

// tracking are parameters that never say which page it is. What starts with "utm_" is one, too.
var tracking = strings.Fields("gclid gclsrc dclid gbraid wbraid srsltid _ga _gl fbclid igshid igsh msclkid yclid ysclid _openstat twclid ttclid li_fat_id " +
	"mc_cid mc_eid mkt_tok vero_id wickedid oly_anon_id oly_enc_id _hsenc _hsmi __hssc __hstc __hsfp hsctatracking")

// canonicalQuery drops empty parameters and, when asked to, tracking ones.
func canonicalQuery(query string, dropTracking bool) string {
	var kept []string
	for part := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(part, "=")
		name = strings.ToLower(escape(name, queryBytes))
		if part == "" || dropTracking && (slices.Contains(tracking, name) || strings.HasPrefix(name, "utm_")) {
			continue
		}
		kept = append(kept, part)
	}
	return strings.Join(kept, "&")
}

// maxInText is how many addresses InText finds.
const maxInText = 1000

// InText finds the first maxInText http and https addresses in a text, in canonical form, each once, in order, without
// the punctuation around them: "(see https://example.org/a_(b))." holds https://example.org/a_(b).
func InText(s string) []string {
	var found []string
	for at := 0; ; {
		next := scheme.FindStringIndex(s[at:])
		if next == nil || len(found) == maxInText {
			return found
		}
		start, body := at+next[0], at+next[1]
		at = body + addressEnd(s[body:])
		if start > 0 && strings.IndexByte(unreserved, s[start-1]) >= 0 {
			continue // the end of some other scheme
		}
		if loc, ok := Canonical(s[start:at]); ok && !slices.Contains(found, loc) {
			found = append(found, loc)
		}
	}
}

var scheme = regexp.MustCompile(`(?i)https?://`)

var closers = map[rune]rune{')': '(', ']': '[', '}': '{'}

// addressEnd says where an address that starts a text ends: at white space, a quotation mark or the
// like, or a bracket that was opened before it, and before the punctuation that ends a sentence.
func addressEnd(s string) int {
	open := make(map[rune]int)
	end := len(s)
	for i, r := range s {
		if opener, ok := closers[r]; ok {
			if open[opener] == 0 {
				end = i
				break
			}
			open[opener]--
		}
		if unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune("<>\"`\\|“”„‘’«»‹›。、，；：！？（）【】「」『』《》…", r) {
			end = i
			break
		}
		if r == '(' || r == '[' || r == '{' {
			open[r]++
		}
	}
	return len(strings.TrimRight(s[:end], ".,;:!?'*_([{"))
}
