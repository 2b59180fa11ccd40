package local

import (
	"path"
	"strings"
)

// ignoreFiles are read in every folder, in this order: the later one wins.
var ignoreFiles = []string{".gitignore", ".marchwardenignore"}

// ignoreRule is one line of an ignore file. The rules are git's:
//
//	*.log       files and folders of that name at any depth
//	/build      only beside the ignore file
//	doc/*.txt   relative to the ignore file, since it has a slash inside
//	cache/      folders only
//	a/**/b      any number of folders between, none too
//	!keep.log   takes back what an earlier rule ignored
type ignoreRule struct {
	segments []string // of the pattern, "**" for any number of folders
	anyDepth bool     // the pattern has no slash: it is about the last part of a path
	dirOnly  bool
	negate   bool
}

// ignoreSet is what the ignore files of one folder say, and of those above it.
type ignoreSet struct {
	parent *ignoreSet
	dir    string // the folder of the ignore files, "." for the root
	rules  []ignoreRule
}

// parseIgnore reads the lines of an ignore file. A line that is no valid pattern
// matches nothing, as with git.
func parseIgnore(text string) []ignoreRule {
	var rules []ignoreRule
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		if rule, ok := parseIgnoreLine(strings.TrimRight(line, "\r\n")); ok {
			rules = append(rules, rule)
		}
	}
	return rules
}

func parseIgnoreLine(line string) (ignoreRule, bool) {
	line = trimTrailingSpaces(line)
	if line == "" || line[0] == '#' {
		return ignoreRule{}, false
	}
	var rule ignoreRule
	line, rule.negate = strings.CutPrefix(line, "!")
	line, rule.dirOnly = strings.CutSuffix(line, "/")
	rule.anyDepth = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return ignoreRule{}, false
	}
	for segment := range strings.SplitSeq(line, "/") {
		n := len(rule.segments)
		if segment == "**" && n > 0 && rule.segments[n-1] == "**" {
			continue
		}
		rule.segments = append(rule.segments, strings.ReplaceAll(segment, "[!", "[^"))
	}
	if n := len(rule.segments); n > 1 && rule.segments[n-1] == "**" {
		rule.segments = append(rule.segments, "*") // "a/**" is what is inside a, not a itself
	}
	return rule, true
}

// trimTrailingSpaces keeps a last space that a backslash protects.
func trimTrailingSpaces(line string) string {
	trimmed := strings.TrimRight(line, " ")
	slashes := len(trimmed) - len(strings.TrimRight(trimmed, `\`))
	if slashes%2 == 1 && len(trimmed) < len(line) {
		return trimmed + " "
	}
	return trimmed
}

// ignored reports whether the path, relative to the root of the folder, is
// ignored. The last rule that matches decides, and a deeper file comes after
// those above it. Whoever walks must not enter an ignored folder: nothing inside
// it can be taken back.
func (s *ignoreSet) ignored(name string, isDir bool) bool {
	for ; s != nil; s = s.parent {
		rel := name
		if s.dir != "." {
			rel = strings.TrimPrefix(name, s.dir+"/")
		}
		for i := len(s.rules) - 1; i >= 0; i-- {
			if s.rules[i].matches(rel, isDir) {
				return !s.rules[i].negate
			}
		}
	}
	return false
}

func (r ignoreRule) matches(rel string, isDir bool) bool {
	if r.dirOnly && !isDir {
		return false
	}
	if r.anyDepth {
		return matchSegment(r.segments[0], path.Base(rel))
	}
	return matchSegments(r.segments, strings.Split(rel, "/"))
}

func matchSegment(pattern, name string) bool {
	if pattern == "**" {
		return true
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// matchSegments goes back to the last "**" only, which is enough, since a "**"
// can take over whatever an earlier one could; hostile patterns stay cheap.
func matchSegments(pattern, name []string) bool {
	p, n, star, resume := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == "**":
			star, resume = p, n
			p++
		case p < len(pattern) && matchSegment(pattern[p], name[n]):
			p, n = p+1, n+1
		case star >= 0:
			resume++
			p, n = star+1, resume
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == "**" {
		p++
	}
	return p == len(pattern)
}
