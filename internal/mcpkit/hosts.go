package mcpkit

import (
	"bytes"
	"cmp"
	_ "embed" // of the configurations
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

// HostNames are the programs that use MCP servers and that HostConfig knows, in the order that help texts name them.
func HostNames() []string {
	return []string{"claude-code", "claude-desktop", "vscode", "cursor", "codex", "gemini-cli"}
}

// HostEntry is one server in the configuration of a host, by Command or by URL. Nothing in it is secret.
type HostEntry struct {
	Name    string
	Command string
	Args    []string
	Home    string   // MARCHWARDEN_HOME, if it is not the default
	Env     []string // names of variables to pass on
	URL     string
	Token   string // the name of the variable with the bearer token
}

// Unencrypted reports whether what the host sends can be read on its way.
func (e HostEntry) Unencrypted() bool {
	u, err := url.Parse(e.URL)
	return err == nil && u.Scheme == "http" && !access.IsLoopback(strings.TrimSuffix(strings.ToLower(u.Hostname()), "."))
}

//go:embed hosts.txt
var hostsText string

// HostConfig is the configuration of an entry for one of HostNames, and where it goes on a system.
func HostConfig(name string, e HostEntry, goos string) (text string, notes []string) {
	kind := " local"
	if e.URL != "" {
		kind = " remote"
	}
	notes = append(e.fill(name+" notes", goos), e.fill(name+kind+" notes", goos)...)
	if e.Token != "" || len(e.Env) > 0 {
		notes = append(notes, e.fill(name+" variables", goos)...)
	}
	text = strings.Join(e.fill(name+kind, goos), "\n") + "\n"
	var indented bytes.Buffer
	if json.Indent(&indented, []byte(text), "", "  ") == nil { // else it is TOML
		text = indented.String()
	}
	return text, notes
}

// place is one for a value in a line of hosts.txt.
var place = regexp.MustCompile(`«(\w+) ?([^»]*)»`)

// fill gives the lines of a section of hosts.txt with their places filled.
func (e HostEntry) fill(section, goos string) (lines []string) {
	_, text, _ := strings.Cut(hostsText, "\n== "+section+"\n")
	text, _, _ = strings.Cut(strings.TrimSuffix(text, "\n"), "\n\n")
	for line := range strings.SplitSeq(text, "\n") {
		whole := line != ""
		line = place.ReplaceAllStringFunc(line, func(at string) string {
			m := place.FindStringSubmatch(at)
			value := e.value(m[1], m[2], goos)
			whole = whole && value != ""
			return value
		})
		if whole {
			lines = append(lines, line)
		}
	}
	return lines
}

// value is what goes to a place, quoted for JSON and TOML, or "" if there is nothing.
func (e HostEntry) value(place, pattern, goos string) string {
	switch place {
	case "bare":
		return e.Name
	case "args":
		return quoteAll(e.Args)
	case "variables":
		return quoteAll(e.Env)
	case "env":
		return e.environment(pattern)
	case "each":
		var all []string
		for _, name := range append(slices.Clone(e.Env), e.Token) {
			if name != "" {
				all = append(all, refer(pattern, name))
			}
		}
		return strings.Join(all, ", ")
	case "token":
		if e.Token != "" {
			return quote(refer(pattern, e.Token))
		}
	case "insecure":
		if e.Unencrypted() {
			return pattern
		}
	case "words": // of a command line, which says nothing of an environment
		if e.URL == "" && e.Home == "" && len(e.Env) == 0 {
			words := []string{shellWord(goos, e.Command)}
			for _, arg := range e.Args {
				words = append(words, shellWord(goos, arg))
			}
			return strings.Join(words, " ")
		}
	case "address": // of one that needs no token
		if e.URL != "" && e.Token == "" {
			return shellWord(goos, e.URL)
		}
	case "desktop":
		return cmp.Or(map[string]string{"darwin": "~/Library/Application Support/Claude/", "windows": `%APPDATA%\Claude\`}[goos], "~/.config/Claude/") + "claude_desktop_config.json"
	}
	return quote(map[string]string{"name": e.Name, "command": e.Command, "home": e.Home, "url": e.URL}[place])
}

// environment is that of a started server; pattern is how the host refers to a variable.
func (e HostEntry) environment(pattern string) string {
	values := map[string]string{}
	if e.Home != "" {
		values["MARCHWARDEN_HOME"] = e.Home
	}
	for _, name := range e.Env {
		values[name] = refer(pattern, name)
	}
	if len(values) == 0 {
		return ""
	}
	return inJSON(values)
}

// refer fills a pattern with the name of a variable, or with that name in lower case with hyphens.
func refer(pattern, variable string) string {
	return strings.NewReplacer("NAME", variable, "name", strings.ToLower(strings.ReplaceAll(variable, "_", "-"))).Replace(pattern)
}

func quoteAll(texts []string) string {
	quoted := make([]string, len(texts))
	for i, s := range texts {
		quoted[i] = inJSON(s)
	}
	if len(quoted) == 0 {
		return ""
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func quote(s string) string {
	if s == "" {
		return ""
	}
	return inJSON(s)
}

// inJSON is also a basic string of TOML, which has one more character escaped.
func inJSON(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // unreachable: plain texts, and a writer that takes all
	}
	return strings.ReplaceAll(strings.TrimSpace(b.String()), "\x7f", `\u007F`)
}

// shellWord quotes an argument for the shell of a system: sh, or both shells of
// Windows, whose file names hold no double quotes.
func shellWord(goos, s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@%+,", r) || goos == "windows" && r == '\\'
	}
	switch {
	case s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0:
		return s
	case goos == "windows":
		return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
