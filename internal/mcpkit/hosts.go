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
	name      string
	where     string // the configuration goes; {} is the file of Claude Desktop
	variables string // what is said of variables, if there are any
	config    func(e HostEntry) string
}

// hosts are those that are known, in the order that help texts name them.
var hosts = []host{
	{"claude-code", "into .mcp.json in the folder of a project; /mcp shows whether it answers", "Claude Code" + readsVariables, claudeCode},
	{"claude-desktop", "into {}; then quit Claude Desktop and start it again",
		"Claude Desktop knows no variables: put the values in place of PUT-…-HERE yourself, and keep the file to yourself", claudeDesktop},
	{"vscode", "into .vscode/mcp.json in a project, or into the file that the command 'MCP: Open User Configuration' opens",
		"VS Code asks for the values when it starts the server, and keeps them in its own store", vscode},
	{"cursor", "into ~/.cursor/mcp.json for all projects, or .cursor/mcp.json in one; switch it on under Customize › MCPs", "Cursor" + readsVariables, cursor},
	{"codex", "at the end of ~/.codex/config.toml, or of .codex/config.toml in a trusted project; /mcp shows whether it answers", "Codex" + readsVariables, codex},
	{"gemini-cli", "into ~/.gemini/settings.json for all projects, or .gemini/settings.json in one; /mcp shows whether it answers", "Gemini CLI" + readsVariables, geminiCLI},
}

const readsVariables = " reads variables of the environment that it was started in"

// HostNames are the hosts that HostConfig knows.
func HostNames() []string {
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = h.name
	}
	return names
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

// HostConfig is the configuration of an entry for one of HostNames, and where it goes on a system.
func HostConfig(name string, e HostEntry, goos string) (text string, notes []string) {
	h := hosts[slices.IndexFunc(hosts, func(h host) bool { return h.name == name })]
	notes = append(notes, strings.Replace(h.where, "{}", desktopFile(goos), 1))
	const everywhere = "or, for all your projects, run: claude mcp add --scope user "
	switch {
	case name == "claude-code" && e.URL == "" && e.Home == "" && len(e.Env) == 0:
		words := []string{e.Name, "--"}
		for _, w := range append([]string{e.Command}, e.Args...) {
			words = append(words, shellWord(w, goos))
		}
		notes = append(notes, everywhere+strings.Join(words, " "))
	case name == "claude-code" && e.URL != "" && e.Token == "":
		notes = append(notes, everywhere+"--transport http "+e.Name+" "+shellWord(e.URL, goos))
	case name == "claude-desktop" && e.URL != "":
		notes = append(notes, "this goes through npx, which comes with Node.js; a server with a public https address can be added under Settings › Connectors instead")
	}
	if e.Token != "" || len(e.Env) > 0 {
		notes = append(notes, h.variables)
	}
	return h.config(e), notes
}

func desktopFile(goos string) string {
	switch goos {
	case "darwin":
		return "~/Library/Application Support/Claude/claude_desktop_config.json"
	case "windows":
		return `%APPDATA%\Claude\claude_desktop_config.json`
	}
	return "~/.config/Claude/claude_desktop_config.json"
}

// callSeconds is how long a host is to wait for one call, if it can be told: the
// time that a research has by itself, and one minute.
const callSeconds = 660

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

func vscode(e HostEntry) string {
	id := func(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "-")) }
	file := struct {
		Inputs  []input               `json:"inputs,omitempty"`
		Servers map[string]jsonServer `json:"servers"`
	}{Servers: map[string]jsonServer{e.Name: e.server(func(name string) string { return "${input:" + id(name) + "}" })}}
	for _, name := range append(slices.Clone(e.Env), e.Token) {
		if name != "" {
			file.Inputs = append(file.Inputs, input{Type: "promptString", ID: id(name), Description: name + " for Marchwarden", Password: true})
		}
	}
	return inJSON(file)
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

func tomlList(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = tomlString(t)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// tomlString is a basic string of TOML: that of JSON, with one more character escaped.
func tomlString(s string) string {
	return strings.ReplaceAll(strings.TrimSpace(inJSON(s)), "\x7f", `\u007F`)
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
