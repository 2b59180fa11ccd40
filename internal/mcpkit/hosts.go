package mcpkit

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

// host is a program that uses MCP servers, and how it wants to be told of one.
type host struct {
	name   string
	config func(e HostEntry) string
	notes  func(e HostEntry, goos string) []string // where the configuration goes
}

// hosts are those that are known, in the order that help texts name them.
var hosts = []host{
	{"claude-code", claudeCode, claudeCodeNotes},
	{"claude-desktop", claudeDesktop, claudeDesktopNotes},
	{"vscode", vscode, vscodeNotes},
	{"cursor", cursor, fixedNotes("into ~/.cursor/mcp.json for all projects, or .cursor/mcp.json in one; switch it on under Customize › MCPs", "Cursor reads variables of the environment that it was started in")},
	{"codex", codex, fixedNotes("at the end of ~/.codex/config.toml, or of .codex/config.toml in a trusted project; /mcp shows whether it answers", "Codex reads variables of the environment that it was started in")},
	{"gemini-cli", geminiCLI, fixedNotes("into ~/.gemini/settings.json for all projects, or .gemini/settings.json in one; /mcp shows whether it answers", "Gemini CLI reads variables of the environment that it was started in")},
}

// HostNames are the hosts that HostConfig knows.
func HostNames() []string {
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = h.name
	}
	return names
}

// HostEntry is one server in the configuration of a host. Either Command or URL is
// there. Nothing in it is secret. Its texts are UTF-8.
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

// HostConfig is the configuration of an entry for one of HostNames, and where it goes on a
// system.
func HostConfig(name string, e HostEntry, goos string) (text string, notes []string) {
	i := slices.IndexFunc(hosts, func(h host) bool { return h.name == name })
	return hosts[i].config(e), hosts[i].notes(e, goos)
}

// callSeconds is how long a host is to wait for one call, if it can be told: the
// time that a research has by itself, and one minute.
const callSeconds = 660

// jsonServer is a server as most hosts write it down.
type jsonServer struct {
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	HTTPURL string            `json:"httpUrl,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Timeout int               `json:"timeout,omitempty"`
}

// input is a question that VS Code asks once, and whose answer it keeps.
type input struct {
	Type        string `json:"type"`
	ID          string `json:"id"`
	Description string `json:"description"`
	Password    bool   `json:"password"`
}

// server writes an entry down; refer is how the host refers to a variable.
func (e HostEntry) server(refer func(name string) string) jsonServer {
	if e.URL != "" {
		s := jsonServer{Type: "http", URL: e.URL}
		if e.Token != "" {
			s.Headers = map[string]string{"Authorization": "Bearer " + refer(e.Token)}
		}
		return s
	}
	s := jsonServer{Type: "stdio", Command: e.Command, Args: e.Args}
	if e.Home != "" || len(e.Env) > 0 {
		s.Env = map[string]string{}
	}
	if e.Home != "" {
		s.Env["MARCHWARDEN_HOME"] = e.Home
	}
	for _, name := range e.Env {
		s.Env[name] = refer(name)
	}
	return s
}

// mcpServers is the file of every host but VS Code and Codex.
func mcpServers(name string, s jsonServer) string {
	return inJSON(map[string]map[string]jsonServer{"mcpServers": {name: s}})
}

func inJSON(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		panic(err) // unreachable: plain texts, and a writer that takes all
	}
	return b.String()
}

func claudeCode(e HostEntry) string {
	return mcpServers(e.Name, e.server(func(name string) string { return "${" + name + "}" }))
}

func claudeCodeNotes(e HostEntry, goos string) []string {
	notes := []string{"into .mcp.json in the folder of a project; /mcp shows whether it answers"}
	switch {
	case e.URL == "" && e.Home == "" && len(e.Env) == 0:
		words := []string{"claude mcp add --scope user", e.Name, "--"}
		for _, w := range append([]string{e.Command}, e.Args...) {
			words = append(words, shellWord(w, goos))
		}
		notes = append(notes, "or, for all your projects, run: "+strings.Join(words, " "))
	case e.URL != "" && e.Token == "":
		notes = append(notes, "or, for all your projects, run: claude mcp add --scope user --transport http "+e.Name+" "+shellWord(e.URL, goos))
	}
	return append(notes, variableNotes(e, "Claude Code reads variables of the environment that it was started in")...)
}

// remoteBridge turns Claude Desktop's stdio into HTTP, which its file cannot say.
const remoteBridge = "mcp-remote@0.15.1"

func claudeDesktop(e HostEntry) string {
	if e.URL == "" {
		s := e.server(func(name string) string { return "PUT-THE-VALUE-OF-" + name + "-HERE" })
		s.Type = ""
		return mcpServers(e.Name, s)
	}
	s := jsonServer{Command: "npx", Args: []string{"-y", remoteBridge, e.URL}}
	if e.Unencrypted() {
		s.Args = append(s.Args, "--allow-http")
	}
	if e.Token != "" {
		// The whole header is in the variable: on Windows, a space in an argument is lost.
		s.Args = append(s.Args, "--header", "Authorization:${"+e.Token+"}")
		s.Env = map[string]string{e.Token: "Bearer PUT-THE-TOKEN-HERE"}
	}
	return mcpServers(e.Name, s)
}

func claudeDesktopNotes(e HostEntry, goos string) []string {
	path := "~/.config/Claude/claude_desktop_config.json"
	switch goos {
	case "darwin":
		path = "~/Library/Application Support/Claude/claude_desktop_config.json"
	case "windows":
		path = `%APPDATA%\Claude\claude_desktop_config.json`
	}
	notes := []string{"into " + path + "; then quit Claude Desktop and start it again"}
	if e.URL != "" {
		notes = append(notes, "this goes through npx, which comes with Node.js; a server with a public https address can be added under Settings › Connectors instead")
	}
	if e.Token != "" || len(e.Env) > 0 {
		notes = append(notes, "Claude Desktop knows no variables: put the values in place of PUT-…-HERE yourself, and keep the file to yourself")
	}
	return notes
}

func vscode(e HostEntry) string {
	id := func(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "-")) }
	file := struct {
		Inputs  []input               `json:"inputs,omitempty"`
		Servers map[string]jsonServer `json:"servers"`
	}{Servers: map[string]jsonServer{e.Name: e.server(func(name string) string { return "${input:" + id(name) + "}" })}}
	for _, name := range slices.Concat(e.Env, oneOrNone(e.Token)) {
		file.Inputs = append(file.Inputs, input{Type: "promptString", ID: id(name), Description: name + " for Marchwarden", Password: true})
	}
	return inJSON(file)
}

func vscodeNotes(e HostEntry, _ string) []string {
	notes := []string{"into .vscode/mcp.json in a project, or into the file that the command 'MCP: Open User Configuration' opens"}
	if e.Token != "" || len(e.Env) > 0 {
		notes = append(notes, "VS Code asks for the values when it starts the server, and keeps them in its own store")
	}
	return notes
}

func cursor(e HostEntry) string {
	s := e.server(func(name string) string { return "${env:" + name + "}" })
	if e.URL != "" {
		s.Type = "" // it is told by the url
	}
	return mcpServers(e.Name, s)
}

func geminiCLI(e HostEntry) string {
	s := e.server(func(name string) string { return "${" + name + "}" })
	s.Type, s.Timeout = "", callSeconds*1000
	s.HTTPURL, s.URL = s.URL, "" // its "url" is for the older transport
	return mcpServers(e.Name, s)
}

func codex(e HostEntry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[mcp_servers.%s]\n", e.Name) // letters and hyphens: a bare key
	if e.URL != "" {
		fmt.Fprintf(&b, "url = %s\n", tomlString(e.URL))
		if e.Token != "" {
			fmt.Fprintf(&b, "bearer_token_env_var = %s\n", tomlString(e.Token))
		}
	} else {
		fmt.Fprintf(&b, "command = %s\nargs = %s\n", tomlString(e.Command), tomlList(e.Args))
		if e.Home != "" {
			fmt.Fprintf(&b, "env = { MARCHWARDEN_HOME = %s }\n", tomlString(e.Home))
		}
		if len(e.Env) > 0 {
			fmt.Fprintf(&b, "env_vars = %s\n", tomlList(e.Env))
		}
	}
	fmt.Fprintf(&b, "tool_timeout_sec = %d\n", callSeconds)
	return b.String()
}

// fixedNotes are where a file is, and where a host's variables are from.
func fixedNotes(where, variables string) func(HostEntry, string) []string {
	return func(e HostEntry, _ string) []string { return append([]string{where}, variableNotes(e, variables)...) }
}

func variableNotes(e HostEntry, note string) []string {
	if e.Token == "" && len(e.Env) == 0 {
		return nil
	}
	return []string{note}
}

func oneOrNone(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func tomlList(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = tomlString(t)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// tomlString is a basic string of TOML. Its text is UTF-8.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// shellWord quotes an argument for the shell of a system: sh, or both shells of
// Windows, whose file names hold no double quotes.
func shellWord(s, goos string) string {
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
