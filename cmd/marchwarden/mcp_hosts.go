package main

import (
	"fmt"
	"slices"
	"strings"
)

// mcpHost is a program that uses MCP servers, and how it wants to be told of one.
type mcpHost struct {
	name   string
	config func(e mcpEntry) string
	notes  func(e mcpEntry, goos string) []string // where the configuration goes
}

// hosts are those that are known, in the order that help texts name them.
var hosts = []mcpHost{
	{"claude-code", claudeCode, claudeCodeNotes},
	{"claude-desktop", claudeDesktop, claudeDesktopNotes},
	{"vscode", vscode, vscodeNotes},
	{"cursor", cursor, fixedNotes("into ~/.cursor/mcp.json for all projects, or .cursor/mcp.json in one; switch it on under Customize › MCPs", "Cursor reads variables of the environment that it was started in")},
	{"codex", codex, fixedNotes("at the end of ~/.codex/config.toml, or of .codex/config.toml in a trusted project; /mcp shows whether it answers", "Codex reads variables of the environment that it was started in")},
	{"gemini-cli", geminiCLI, fixedNotes("into ~/.gemini/settings.json for all projects, or .gemini/settings.json in one; /mcp shows whether it answers", "Gemini CLI reads variables of the environment that it was started in")},
}

func hostNames() []string {
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = h.name
	}
	return names
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
func (e mcpEntry) server(refer func(name string) string) jsonServer {
	if e.url != "" {
		s := jsonServer{Type: "http", URL: e.url}
		if e.token != "" {
			s.Headers = map[string]string{"Authorization": "Bearer " + refer(e.token)}
		}
		return s
	}
	s := jsonServer{Type: "stdio", Command: e.command, Args: e.args}
	if e.home != "" || len(e.env) > 0 {
		s.Env = map[string]string{}
	}
	if e.home != "" {
		s.Env["MARCHWARDEN_HOME"] = e.home
	}
	for _, name := range e.env {
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
	if err := printJSON(&b, v); err != nil {
		panic(err) // unreachable: plain texts, and a writer that takes all
	}
	return b.String()
}

func claudeCode(e mcpEntry) string {
	return mcpServers(e.name, e.server(func(name string) string { return "${" + name + "}" }))
}

func claudeCodeNotes(e mcpEntry, goos string) []string {
	notes := []string{"into .mcp.json in the folder of a project; /mcp shows whether it answers"}
	switch {
	case e.url == "" && e.home == "" && len(e.env) == 0:
		words := []string{"claude mcp add --scope user", e.name, "--"}
		for _, w := range append([]string{e.command}, e.args...) {
			words = append(words, shellWord(w, goos))
		}
		notes = append(notes, "or, for all your projects, run: "+strings.Join(words, " "))
	case e.url != "" && e.token == "":
		notes = append(notes, "or, for all your projects, run: claude mcp add --scope user --transport http "+e.name+" "+shellWord(e.url, goos))
	}
	return append(notes, variableNotes(e, "Claude Code reads variables of the environment that it was started in")...)
}

// remoteBridge turns Claude Desktop's stdio into HTTP, which its file cannot say.
const remoteBridge = "mcp-remote@0.15.1"

func claudeDesktop(e mcpEntry) string {
	if e.url == "" {
		s := e.server(func(name string) string { return "PUT-THE-VALUE-OF-" + name + "-HERE" })
		s.Type = ""
		return mcpServers(e.name, s)
	}
	s := jsonServer{Command: "npx", Args: []string{"-y", remoteBridge, e.url}}
	if e.unencrypted() {
		s.Args = append(s.Args, "--allow-http")
	}
	if e.token != "" {
		// The whole header is in the variable: on Windows, a space in an argument is lost.
		s.Args = append(s.Args, "--header", "Authorization:${"+e.token+"}")
		s.Env = map[string]string{e.token: "Bearer PUT-THE-TOKEN-HERE"}
	}
	return mcpServers(e.name, s)
}

func claudeDesktopNotes(e mcpEntry, goos string) []string {
	path := "~/.config/Claude/claude_desktop_config.json"
	switch goos {
	case "darwin":
		path = "~/Library/Application Support/Claude/claude_desktop_config.json"
	case "windows":
		path = `%APPDATA%\Claude\claude_desktop_config.json`
	}
	notes := []string{"into " + path + "; then quit Claude Desktop and start it again"}
	if e.url != "" {
		notes = append(notes, "this goes through npx, which comes with Node.js; a server with a public https address can be added under Settings › Connectors instead")
	}
	if e.token != "" || len(e.env) > 0 {
		notes = append(notes, "Claude Desktop knows no variables: put the values in place of PUT-…-HERE yourself, and keep the file to yourself")
	}
	return notes
}

func vscode(e mcpEntry) string {
	id := func(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "-")) }
	file := struct {
		Inputs  []input               `json:"inputs,omitempty"`
		Servers map[string]jsonServer `json:"servers"`
	}{Servers: map[string]jsonServer{e.name: e.server(func(name string) string { return "${input:" + id(name) + "}" })}}
	for _, name := range slices.Concat(e.env, oneOrNone(e.token)) {
		file.Inputs = append(file.Inputs, input{Type: "promptString", ID: id(name), Description: name + " for Marchwarden", Password: true})
	}
	return inJSON(file)
}

func vscodeNotes(e mcpEntry, _ string) []string {
	notes := []string{"into .vscode/mcp.json in a project, or into the file that the command 'MCP: Open User Configuration' opens"}
	if e.token != "" || len(e.env) > 0 {
		notes = append(notes, "VS Code asks for the values when it starts the server, and keeps them in its own store")
	}
	return notes
}

func cursor(e mcpEntry) string {
	s := e.server(func(name string) string { return "${env:" + name + "}" })
	if e.url != "" {
		s.Type = "" // it is told by the url
	}
	return mcpServers(e.name, s)
}

func geminiCLI(e mcpEntry) string {
	s := e.server(func(name string) string { return "${" + name + "}" })
	s.Type, s.Timeout = "", callSeconds*1000
	s.HTTPURL, s.URL = s.URL, "" // its "url" is for the older transport
	return mcpServers(e.name, s)
}

func codex(e mcpEntry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[mcp_servers.%s]\n", e.name) // letters and hyphens: a bare key
	if e.url != "" {
		fmt.Fprintf(&b, "url = %s\n", tomlString(e.url))
		if e.token != "" {
			fmt.Fprintf(&b, "bearer_token_env_var = %s\n", tomlString(e.token))
		}
	} else {
		fmt.Fprintf(&b, "command = %s\nargs = %s\n", tomlString(e.command), tomlList(e.args))
		if e.home != "" {
			fmt.Fprintf(&b, "env = { MARCHWARDEN_HOME = %s }\n", tomlString(e.home))
		}
		if len(e.env) > 0 {
			fmt.Fprintf(&b, "env_vars = %s\n", tomlList(e.env))
		}
	}
	fmt.Fprintf(&b, "tool_timeout_sec = %d\n", callSeconds)
	return b.String()
}

// fixedNotes are where a file is, and where a host's variables are from.
func fixedNotes(where, variables string) func(mcpEntry, string) []string {
	return func(e mcpEntry, _ string) []string { return append([]string{where}, variableNotes(e, variables)...) }
}

func variableNotes(e mcpEntry, note string) []string {
	if e.token == "" && len(e.env) == 0 {
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
