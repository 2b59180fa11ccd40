package mcpkit

import (
	"bytes"
	_ "embed" // of the configurations
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"text/template"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

// hostNames are the programs that use MCP servers and are known here, in the order that help texts name them.
var hostNames = []string{"claude-code", "claude-desktop", "vscode", "cursor", "codex", "gemini-cli"}

// HostNames are the hosts that HostConfig knows.
func HostNames() []string { return slices.Clone(hostNames) }

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

// Variables are the names of all variables of the entry.
func (e HostEntry) Variables() []string {
	if e.URL == "" {
		return e.Env
	}
	return slices.DeleteFunc([]string{e.Token}, func(name string) bool { return name == "" })
}

//go:embed hosts.tmpl
var hostsText string

var hostTemplates = template.Must(template.New("hosts").Funcs(template.FuncMap{"json": inJSON, "toml": inTOML, "refer": refer, "env": env, "shell": shellWord}).Parse(hostsText))

// entryOn is what a template is filled with: an entry, and the system that the host runs on.
type entryOn struct {
	HostEntry
	GOOS string
}

// HostConfig is the configuration of an entry for one of HostNames, and where it goes on a system.
func HostConfig(name string, e HostEntry, goos string) (text string, notes []string) {
	filled := func(name string) string {
		var b strings.Builder
		if err := hostTemplates.ExecuteTemplate(&b, name, entryOn{e, goos}); err != nil {
			panic(err) // unreachable: the templates are part of this program, and tested with every field
		}
		return strings.TrimSpace(b.String())
	}
	for note := range strings.SplitSeq(filled(name+" notes"), "\n\n") {
		if note = strings.TrimSpace(note); note != "" {
			notes = append(notes, note)
		}
	}
	text = filled(name)
	var indented bytes.Buffer
	if json.Indent(&indented, []byte(text), "", "  ") == nil { // else it is TOML
		text = indented.String()
	}
	return text + "\n", notes
}

// env is the environment of a started server as a further member of a JSON object; pattern is how the
// host refers to a variable.
func env(e entryOn, pattern string) string {
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
	return `, "env": ` + inJSON(values)
}

// refer fills a pattern with the name of a variable, or with that name in lower case with hyphens.
func refer(pattern, variable string) string {
	return strings.NewReplacer("NAME", variable, "name", strings.ToLower(strings.ReplaceAll(variable, "_", "-"))).Replace(pattern)
}

func inJSON(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // unreachable: plain texts, and a writer that takes all
	}
	return strings.TrimSpace(b.String())
}

// inTOML is a basic string of TOML: that of JSON, with one more character escaped.
func inTOML(s string) string { return strings.ReplaceAll(inJSON(s), "\x7f", `\u007F`) }

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
