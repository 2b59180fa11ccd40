package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// mcpRun runs 'marchwarden mcp …' in a world where the program is at a path.
func mcpRun(t testing.TB, self string, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	a := world(t, env)
	var out, errs bytes.Buffer
	a.stdout, a.Stderr, a.Self = &out, &errs, func() (string, error) { return self, nil }
	root := &cobra.Command{Use: "marchwarden", SilenceErrors: true, SilenceUsage: true}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newMCP(a))
	root.SetArgs(append([]string{"mcp"}, args...))
	root.SetOut(a.stdout)
	root.SetErr(a.Stderr)
	if err := root.ExecuteContext(t.Context()); err != nil {
		a.complain(err)
		code = exitCode(t.Context(), err)
	}
	return code, out.String(), errs.String()
}

func TestMCPConfig(t *testing.T) {
	const self = "/opt/m w/marchwarden"
	remote := []string{"--http", "https://research.example.org", "--token-env", "TEAM_TOKEN"}
	tests := []struct {
		args []string
		want string
		note string
	}{
		{[]string{"claude-code"}, `{
  "mcpServers": {
    "marchwarden": {
      "type": "stdio",
      "command": "/opt/m w/marchwarden",
      "args": [
        "serve",
        "pi"
      ]
    }
  }
}
`, "claude mcp add --scope user marchwarden -- '/opt/m w/marchwarden' serve pi"},
		{append([]string{"claude-code"}, remote...), `{
  "mcpServers": {
    "marchwarden": {
      "type": "http",
      "url": "https://research.example.org/mcp",
      "headers": {
        "Authorization": "Bearer ${TEAM_TOKEN}"
      }
    }
  }
}
`, ".mcp.json"},
		{[]string{"claude-desktop", "files", "--env", "OPENAI_API_KEY", "--", "--library", "/srv/notes"}, `{
  "mcpServers": {
    "marchwarden-files": {
      "command": "/opt/m w/marchwarden",
      "args": [
        "serve",
        "files",
        "--library",
        "/srv/notes"
      ],
      "env": {
        "OPENAI_API_KEY": "PUT-THE-VALUE-OF-OPENAI_API_KEY-HERE"
      }
    }
  }
}
`, "claude_desktop_config.json"},
		{append([]string{"claude-desktop"}, remote...), `{
  "mcpServers": {
    "marchwarden": {
      "command": "npx",
      "args": [
        "-y",
        "mcp-remote@0.15.1",
        "https://research.example.org/mcp",
        "--header",
        "Authorization:${TEAM_TOKEN}"
      ],
      "env": {
        "TEAM_TOKEN": "Bearer PUT-THE-TOKEN-HERE"
      }
    }
  }
}
`, "Settings › Connectors"},
		{[]string{"vscode", "web", "--env", "TAVILY_API_KEY"}, `{
  "inputs": [
    {
      "type": "promptString",
      "id": "tavily-api-key",
      "description": "TAVILY_API_KEY for Marchwarden",
      "password": true
    }
  ],
  "servers": {
    "marchwarden-web": {
      "type": "stdio",
      "command": "/opt/m w/marchwarden",
      "args": [
        "serve",
        "web"
      ],
      "env": {
        "TAVILY_API_KEY": "${input:tavily-api-key}"
      }
    }
  }
}
`, ".vscode/mcp.json"},
		{append([]string{"vscode"}, remote...), `{
  "inputs": [
    {
      "type": "promptString",
      "id": "team-token",
      "description": "TEAM_TOKEN for Marchwarden",
      "password": true
    }
  ],
  "servers": {
    "marchwarden": {
      "type": "http",
      "url": "https://research.example.org/mcp",
      "headers": {
        "Authorization": "Bearer ${input:team-token}"
      }
    }
  }
}
`, "keeps them in its own store"},
		{[]string{"cursor", "arxiv", "--env", "OPENALEX_API_KEY"}, `{
  "mcpServers": {
    "marchwarden-arxiv": {
      "type": "stdio",
      "command": "/opt/m w/marchwarden",
      "args": [
        "serve",
        "arxiv"
      ],
      "env": {
        "OPENALEX_API_KEY": "${env:OPENALEX_API_KEY}"
      }
    }
  }
}
`, "~/.cursor/mcp.json"},
		{append([]string{"cursor"}, remote...), `{
  "mcpServers": {
    "marchwarden": {
      "url": "https://research.example.org/mcp",
      "headers": {
        "Authorization": "Bearer ${env:TEAM_TOKEN}"
      }
    }
  }
}
`, "~/.cursor/mcp.json"},
		{[]string{"codex", "database", "--env", "MARCHWARDEN_DB,PGPASSWORD"}, `[mcp_servers.marchwarden-database]
command = "/opt/m w/marchwarden"
args = ["serve", "database"]
env_vars = ["MARCHWARDEN_DB", "PGPASSWORD"]
tool_timeout_sec = 660
`, "~/.codex/config.toml"},
		{append([]string{"codex"}, remote...), `[mcp_servers.marchwarden]
url = "https://research.example.org/mcp"
bearer_token_env_var = "TEAM_TOKEN"
tool_timeout_sec = 660
`, "~/.codex/config.toml"},
		{[]string{"gemini-cli", "pi", "--env", "BRAVE_API_KEY"}, `{
  "mcpServers": {
    "marchwarden": {
      "command": "/opt/m w/marchwarden",
      "args": [
        "serve",
        "pi"
      ],
      "env": {
        "BRAVE_API_KEY": "${BRAVE_API_KEY}"
      },
      "timeout": 660000
    }
  }
}
`, "~/.gemini/settings.json"},
		{append([]string{"gemini-cli"}, remote...), `{
  "mcpServers": {
    "marchwarden": {
      "httpUrl": "https://research.example.org/mcp",
      "headers": {
        "Authorization": "Bearer ${TEAM_TOKEN}"
      },
      "timeout": 660000
    }
  }
}
`, "~/.gemini/settings.json"},
	}
	seen := map[string]bool{}
	for _, tt := range tests {
		// The token is in the environment, and is not looked at.
		code, out, errs := mcpRun(t, self, map[string]string{"TEAM_TOKEN": "s3cret-of-the-team"}, append([]string{"config"}, tt.args...)...)
		if code != exitOK {
			t.Errorf("%v: exit %d: %s", tt.args, code, errs)
			continue
		}
		if diff := cmp.Diff(tt.want, out); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt.args, diff)
		}
		if tt.args[0] != "codex" && !json.Valid([]byte(out)) {
			t.Errorf("%v: not JSON", tt.args)
		}
		if !strings.Contains(errs, tt.note) {
			t.Errorf("%v: stderr lacks %q: %s", tt.args, tt.note, errs)
		}
		if strings.Contains(out+errs, "s3cret") {
			t.Errorf("%v tells the token", tt.args)
		}
		seen[tt.args[0]] = true
	}
	help, err := helpFiles.ReadFile("help/mcp-config.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range mcpkit.HostNames() {
		if !seen[name] || !strings.Contains(string(help), name) {
			t.Errorf("%s is not tried here, or not in the help", name)
		}
	}
}

// TestMCPConfigCarriesTheHome writes the home folder down where it is not the default.
func TestMCPConfigCarriesTheHome(t *testing.T) {
	env := map[string]string{"MARCHWARDEN_HOME": "/srv/re \"s\"", "TAVILY_API_KEY": "tvly-1234567890"}
	for _, name := range mcpkit.HostNames() {
		code, out, errs := mcpRun(t, "/bin/marchwarden", env, "config", name)
		if code != exitOK || !strings.Contains(out, `/srv/re \"s\"`) {
			t.Errorf("%s: exit %d: %s%s", name, code, out, errs)
		}
		if !strings.Contains(errs, "--env TAVILY_API_KEY passes it on by name") || strings.Contains(out+errs, "tvly-") {
			t.Errorf("%s: stderr is %s", name, errs)
		}
	}
}

func TestMCPConfigRefuses(t *testing.T) {
	const pasted = "mw_abcdefghijklmnop-qrstuv.wxyz"
	tests := []struct {
		args []string
		want string
	}{
		{[]string{}, "takes a host and, if you like, a researcher; 0 given"},
		{[]string{"emacs"}, `host: must be claude-code, claude-desktop, vscode, cursor, codex or gemini-cli, not "emacs"`},
		{[]string{"codex", "wep"}, `researcher: must be pi, files, database, web or arxiv, not "wep"`},
		{[]string{"codex", "web", "more"}, "3 given"},
		{[]string{"codex", "web", "--", "--libary", "/x"}, "unknown flag: --libary"},
		{[]string{"codex", "files", "--", "notes"}, "serve files takes no arguments"},
		{[]string{"codex", "files", "--", "--library", "notes"}, `--library: must be an absolute path, not "notes"`},
		{[]string{"codex", "database", "--", "--db=postgres://me:hunter22@db/trials"}, "must not be in the configuration of a host"},
		{[]string{"codex", "database", "--", "--db", "postgres://me:hunter22@db/trials"}, "must not be in the configuration of a host"},
		{[]string{"codex", "--token-env", "X"}, "goes with --http"},
		{[]string{"codex", "--env", pasted}, "must be names of environment variables"},
		{[]string{"codex", "--http", "https://x.org", "--token-env", pasted}, "must be the name of an environment variable"},
		{[]string{"codex", "--http", "https://me:hunter22@x.org"}, "must be an http or https address"},
		{[]string{"codex", "--http", "https://x.org/mcp?token=hunter22"}, "must be an http or https address"},
		{[]string{"codex", "--http", "x.org"}, "must be an http or https address"},
		{[]string{"codex", "--http", "https://x.org", "--env", "X"}, "refers to a server that runs already"},
		{[]string{"codex", "--http", "https://x.org", "--", "--embedded"}, "refers to a server that runs already"},
	}
	for _, tt := range tests {
		code, out, errs := mcpRun(t, "/bin/marchwarden", nil, append([]string{"config"}, tt.args...)...)
		if code != exitUsage || out != "" || !strings.Contains(errs, tt.want) {
			t.Errorf("%v: exit %d, stdout %q, stderr %s, want %q", tt.args, code, out, errs, tt.want)
		}
		if strings.Contains(errs, "hunter22") || strings.Contains(errs, pasted) {
			t.Errorf("%v tells a secret: %s", tt.args, errs)
		}
	}
}

func TestMCPConfigWarns(t *testing.T) {
	tests := []struct {
		self string
		args []string
		want string
	}{
		{"/bin/marchwarden", []string{"codex", "--http", "http://research.example.org", "--token-env", "X"}, "travels unencrypted"},
		{"/bin/marchwarden", []string{"codex", "--http", "http://127.example.org", "--token-env", "X"}, "travels unencrypted"},
		{"/tmp/go-build123/exe/marchwarden", []string{"codex"}, "'go run'"},
	}
	for _, tt := range tests {
		if code, _, errs := mcpRun(t, tt.self, nil, append([]string{"config"}, tt.args...)...); code != exitOK || !strings.Contains(errs, tt.want) {
			t.Errorf("%v: exit %d, stderr %s", tt.args, code, errs)
		}
	}
	for _, address := range []string{"http://127.0.0.1:8642", "http://[::1]:8642/mcp", "https://research.example.org"} {
		if _, _, errs := mcpRun(t, "/bin/marchwarden", nil, "config", "codex", "--http", address, "--token-env", "X"); strings.Contains(errs, "unencrypted") {
			t.Errorf("%s: %s", address, errs)
		}
	}
}

func TestMCPPing(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || r.Method != http.MethodGet || r.Header.Get("Authorization") != "" {
			status = http.StatusTeapot
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	for _, suffix := range []string{"", "/", "/mcp"} {
		if code, out, errs := mcpRun(t, "", nil, "ping", server.URL+suffix); code != exitOK || out != "ready\n" || errs != "" {
			t.Errorf("a ready server at %q: exit %d, %s%s", suffix, code, out, errs)
		}
	}
	for _, status = range []int{http.StatusServiceUnavailable, http.StatusFound, http.StatusNotFound} {
		if code, _, errs := mcpRun(t, "", nil, "ping", server.URL); code != exitFailed || !strings.Contains(errs, strconv.Itoa(status)) {
			t.Errorf("status %d: exit %d, %s", status, code, errs)
		}
	}
	server.Close()
	if code, _, errs := mcpRun(t, "", nil, "ping", server.URL); code != exitFailed || !strings.Contains(errs, "refused") {
		t.Errorf("nobody there: exit %d, %s", code, errs)
	}
	for _, bad := range []string{"localhost:8642", "ftp://x.org", "https://me:pw@x.org", "http://"} {
		if code, _, errs := mcpRun(t, "", nil, "ping", bad); code != exitUsage {
			t.Errorf("%s: exit %d, %s", bad, code, errs)
		}
	}
}
