package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// packagingFile reads a file of the repository.
func packagingFile(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// onlyMatch is the one group of the one match of a pattern.
func onlyMatch(t testing.TB, what, text, pattern string) string {
	t.Helper()
	all := regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1)
	if len(all) != 1 {
		t.Fatalf("%s has %d times %s", what, len(all), pattern)
	}
	return all[0][1]
}

// serverJSON is the part of server.json that is looked at.
type serverJSON struct {
	Name, Title, Description, Version, WebsiteURL string
	Packages                                      []struct {
		RegistryType, Identifier, FileSha256 string
		Transport                            struct{ Type string }
		PackageArguments                     []struct{ Type, Value string }
		EnvironmentVariables                 []struct {
			Name     string
			IsSecret bool
		}
	}
}

// mcpbManifest is the part of the manifest that is looked at.
type mcpbManifest struct {
	Name, Version, Description, License string
	Server                              struct {
		EntryPoint string `json:"entry_point"`
		MCPConfig  struct {
			Command string
			Args    []string
			Env     map[string]string
		} `json:"mcp_config"`
	}
	UserConfig map[string]struct {
		Type      string
		Default   any
		Sensitive bool
		Required  bool
	} `json:"user_config"`
}

// TestPackagingAgrees holds the registry's entry, the image, the bundle and the
// compose file to one name, one version and one description, within the limits of the
// registry.
func TestPackagingAgrees(t *testing.T) {
	var server serverJSON
	var manifest mcpbManifest
	for name, v := range map[string]any{"server.json": &server, "mcpb/manifest.json": &manifest} {
		if err := json.Unmarshal([]byte(packagingFile(t, name)), v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	docker, gemini := packagingFile(t, "Dockerfile"), packagingFile(t, "gemini-extension.json")
	module := onlyMatch(t, "go.mod", packagingFile(t, "go.mod"), `(?m)^module (\S+)$`)
	host, _, _ := strings.Cut(module, "/")
	labels := strings.Split(host, ".")
	slices.Reverse(labels)
	same := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s is %q, want %q", what, got, want)
		}
	}
	same("the name in server.json", server.Name, strings.Join(labels, ".")+"/marchwarden")
	same("the label of the image", onlyMatch(t, "Dockerfile", docker, `io\.modelcontextprotocol\.server\.name="([^"]*)"`), server.Name)
	same("the version of the image", onlyMatch(t, "Dockerfile", docker, `(?m)^ARG VERSION=(\S+)$`), server.Version)
	for name, times := range map[string]int{"compose.yaml": 1, "compose.cluster.yaml": 1, "deploy/kubernetes/10-hub.yaml": 1, "deploy/kubernetes/20-worker.yaml": 1, "deploy/kubernetes/README.md": 2} {
		images := regexp.MustCompile(`\bmarchwarden:(\S+)-http\b`).FindAllStringSubmatch(packagingFile(t, name), -1)
		if len(images) != times {
			t.Errorf("%s names the image %d times, want %d", name, len(images), times)
		}
		for _, image := range images {
			same("the version of the image in "+name, image[1], server.Version)
		}
	}
	same("the version of the bundle", manifest.Version, server.Version)
	same("the description of the bundle", manifest.Description, server.Description)
	same("the version of the extension", onlyMatch(t, "gemini-extension.json", gemini, `"version": "([^"]*)"`), server.Version)
	same("the description of the extension", onlyMatch(t, "gemini-extension.json", gemini, `"description": "([^"]*)"`), server.Description)
	same("the address", server.WebsiteURL, "https://"+module)
	if n := len([]rune(server.Description)); n == 0 || n > 100 {
		t.Errorf("the description has %d characters; the registry wants 1 to 100", n)
	}
	if len(server.Name) > 200 || !regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`).MatchString(server.Name) {
		t.Errorf("the registry does not take the name %q", server.Name)
	}
	if released := regexp.MustCompile(`(?m)^## v?(\d+\.\d+\.\d+)`).FindStringSubmatch(packagingFile(t, "CHANGELOG.md")); released != nil {
		same("the newest version of the changelog", released[1], server.Version)
	}
	kinds := map[string]int{}
	for _, p := range server.Packages {
		kinds[p.RegistryType]++
		if p.Transport.Type != "stdio" || !strings.Contains(p.Identifier, server.Version) || p.FileSha256 != "" {
			t.Errorf("%s: transport %q, want stdio; the version must be in the identifier; the hash is for dist/server.json", p.Identifier, p.Transport.Type)
		}
		for _, v := range p.EnvironmentVariables {
			if s := slices.IndexFunc(settings.All, func(s settings.Setting) bool { return s.Env == v.Name }); s < 0 || settings.All[s].Secret != v.IsSecret {
				t.Errorf("%s: %s is no setting, or secret in one of two places", p.Identifier, v.Name)
			}
		}
	}
	if kinds["oci"] != 1 || kinds["mcpb"] != 6 {
		t.Errorf("server.json has packages %v", kinds)
	}
}

// TestBundleManifest holds what the bundle asks of its user to the settings: a host
// leaves the name of an optional value in place if it has no default, and a key that
// is such a name would be sent to its service.
func TestBundleManifest(t *testing.T) {
	var m mcpbManifest
	if err := json.Unmarshal([]byte(packagingFile(t, "mcpb/manifest.json")), &m); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(m.Server.MCPConfig.Args, " "); got != "serve pi" || m.Server.MCPConfig.Command != "${__dirname}/"+m.Server.EntryPoint {
		t.Errorf("the bundle runs %s %s", m.Server.MCPConfig.Command, got)
	}
	if len(m.Server.MCPConfig.Env) != len(m.UserConfig) {
		t.Errorf("%d variables for %d values", len(m.Server.MCPConfig.Env), len(m.UserConfig))
	}
	for env, value := range m.Server.MCPConfig.Env {
		name := strings.TrimSuffix(strings.TrimPrefix(value, "${user_config."), "}")
		asked, ok := m.UserConfig[name]
		i := slices.IndexFunc(settings.All, func(s settings.Setting) bool { return s.Env == env })
		switch {
		case !ok || i < 0:
			t.Errorf("%s=%s: no such value, or no such setting", env, value)
		case asked.Default == nil || asked.Required:
			t.Errorf("%s must be optional, with a default", name)
		case asked.Sensitive != settings.All[i].Secret:
			t.Errorf("%s is secret in one of two places", name)
		case settings.All[i].Kind == settings.Folders && asked.Type != "directory" || settings.All[i].Kind == settings.Boolean && asked.Type != "boolean":
			t.Errorf("%s is of type %s", name, asked.Type)
		}
	}
}

// TestPackagingNamesWhatExists holds flags and variables that documents and packaging
// name to those of the program.
func TestPackagingNamesWhatExists(t *testing.T) {
	flags, variables, commands := map[string]bool{"help": true}, map[string]bool{}, map[string]bool{}
	root := newRoot(world(t, nil))
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		commands[cmd.CommandPath()] = true
		add := func(f *pflag.Flag) { flags[f.Name] = true }
		cmd.Flags().VisitAll(add)
		cmd.PersistentFlags().VisitAll(add)
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
	for _, s := range settings.All {
		variables[s.Env] = true
	}
	// A command line, until something else begins; what follows -- is another's or of the same command.
	line := regexp.MustCompile(`(?:\bmarchwarden|\[(?:serve|"serve"|hub|"hub"|worker|"worker")),? [^\n` + "`" + `|;&()]*`)
	flag := regexp.MustCompile(`--([a-z][a-z-]*)`)
	span := regexp.MustCompile("`--([a-z][a-z-]*)[^`]*`")
	variable := regexp.MustCompile(`\bMARCHWARDEN_[A-Z_]+\b`)
	verb := regexp.MustCompile(`marchwarden ((?:[a-z]+)(?: (?:config|ping|add|remove|list|pi|files|web|arxiv|database))?)\b`)
	seen := 0
	for _, name := range []string{"docs/mcp.md", "compose.yaml", "Dockerfile", "deploy/marchwarden.service", "deploy/marchwarden.env.example", "deploy/README.md", "server.json", "mcpb/manifest.json",
		"compose.cluster.yaml", "deploy/marchwarden-hub.service", "deploy/marchwarden-worker.service", "deploy/hub.env.example", "deploy/worker.env.example",
		"deploy/kubernetes/10-hub.yaml", "deploy/kubernetes/20-worker.yaml", "deploy/kubernetes/README.md", "docs/cluster.md", "docs/cluster-security.md", "docs/scale.md", "README.md"} {
		text := packagingFile(t, name)
		named := span.FindAllStringSubmatch(text, -1)
		for _, command := range line.FindAllString(text, -1) {
			if strings.Contains(command, "claude ") || strings.Contains(command, "codex mcp") || strings.Contains(command, " create secret ") {
				continue
			}
			named = append(named, flag.FindAllStringSubmatch(command, -1)...)
		}
		for _, m := range named {
			seen++
			if !flags[m[1]] {
				t.Errorf("%s names --%s, which is no flag", name, m[1])
			}
		}
		for _, v := range variable.FindAllString(text, -1) {
			seen++
			if !variables[v] {
				t.Errorf("%s names %s, which is no setting", name, v)
			}
		}
		if !strings.HasSuffix(name, ".md") {
			continue
		}
		for _, m := range regexp.MustCompile("(?m)(?:^|`)(?:\\$ )?"+verb.String()).FindAllStringSubmatch(text, -1) {
			seen++
			first, _, _ := strings.Cut(m[1], " ")
			if !commands["marchwarden "+m[1]] && !commands["marchwarden "+first] {
				t.Errorf("%s names the command marchwarden %s, which is not there", name, m[1])
			}
		}
	}
	if seen < 40 {
		t.Errorf("only %d names found: the patterns do not fit", seen)
	}
}

// TestDocumentedConfigurations holds the configurations for copying in docs/mcp.md to
// those that the command prints.
func TestDocumentedConfigurations(t *testing.T) {
	remote := []string{"--http", "https://research.example.org", "--token-env", "TEAM_TOKEN"}
	blocks := regexp.MustCompile("(?ms)^```(?:json|toml)\n(.*?)^```$")
	for title, args := range map[string][]string{
		"Claude Code":    {"claude-code", "--env", "ANTHROPIC_API_KEY"},
		"Claude Desktop": {"claude-desktop", "pi", "--", "--library", "/home/you/notes"},
		"VS Code":        {"vscode"},
		"Cursor":         {"cursor", "--env", "TAVILY_API_KEY"},
		"Codex":          {"codex", "--env", "OPENAI_API_KEY"},
		"Gemini CLI":     {"gemini-cli", "--env", "BRAVE_API_KEY"},
	} {
		_, section, _ := strings.Cut(packagingFile(t, "docs/mcp.md"), "\n### "+title+"\n")
		section, _, _ = strings.Cut(section, "\n##")
		found := blocks.FindAllStringSubmatch(section, -1)
		if len(found) != 2 {
			t.Errorf("%s has %d configurations, want one for stdio and one for HTTP", title, len(found))
			continue
		}
		for i, args := range [][]string{args, append([]string{args[0]}, remote...)} {
			code, printed, errs := mcpRun(t, "/usr/local/bin/marchwarden", nil, append([]string{"config"}, args...)...)
			if code != exitOK {
				t.Fatalf("%v: exit %d: %s", args, code, errs)
			}
			var got, want any = printed, found[i][1]
			if args[0] != "codex" {
				if err := json.Unmarshal([]byte(printed), &got); err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal([]byte(found[i][1]), &want); err != nil {
					t.Errorf("%s: %v", title, err)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-documented +printed):\n%s", title, diff)
			}
		}
	}
}
