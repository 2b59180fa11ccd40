package mcpkit

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestHostConfigQuotes holds every path and flag to come out of the configuration as
// it went in, whatever is in it.
func TestHostConfigQuotes(t *testing.T) {
	check := func(t interface {
		Fatalf(string, ...any)
	}, path string) {
		e := HostEntry{Name: "marchwarden", Command: path, Args: []string{"serve", "files", "--library", path}, Home: path}
		for _, host := range HostNames() {
			text, _ := HostConfig(host, e, "linux")
			var command, home string
			var args []string
			if host == "codex" {
				for line := range strings.Lines(text) {
					key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " = ")
					switch key {
					case "command":
						command = unTOML(t, value)
					case "args":
						for _, part := range tomlText.FindAllString(value, -1) {
							args = append(args, unTOML(t, part))
						}
					case "env":
						home = unTOML(t, strings.TrimSuffix(strings.TrimPrefix(value, "{ MARCHWARDEN_HOME = "), " }"))
					}
				}
			} else {
				var file map[string]map[string]struct {
					Command string
					Args    []string
					Env     map[string]string
				}
				if err := json.Unmarshal([]byte(text), &file); err != nil {
					t.Fatalf("%s: %v in %s", host, err, text)
				}
				for _, servers := range file {
					command, args, home = servers[e.Name].Command, servers[e.Name].Args, servers[e.Name].Env["MARCHWARDEN_HOME"]
				}
			}
			if command != path || home != path || !slices.Equal(args, e.Args) {
				t.Fatalf("%s: %q became command %q, args %q, home %q", host, path, command, args, home)
			}
		}
	}
	for _, path := range []string{`C:\Program Files\Marchwarden\marchwarden.exe`, `/Users/a b/"bin"/it's`, "/a\nb\tc\x7f", `\\server\share\u0041`, "/ü/漢/😀", "/a<b>&c"} {
		check(t, path)
	}
	rapid.Check(t, func(r *rapid.T) { check(r, "/"+rapid.String().Draw(r, "path")) })
}

// tomlText is one basic string of TOML.
var tomlText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// unTOML reads a basic string: of its escapes those are used that Go has, too.
func unTOML(t interface{ Fatalf(string, ...any) }, quoted string) string {
	s, err := strconv.Unquote(quoted)
	if err != nil || strings.ContainsFunc(quoted, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		t.Fatalf("%q is no basic string: %v", quoted, err)
	}
	return s
}

func TestShellWord(t *testing.T) {
	for _, tt := range []struct{ goos, word, want string }{
		{"linux", "/usr/bin/marchwarden", "/usr/bin/marchwarden"},
		{"linux", "/a b/it's", `'/a b/it'\''s'`},
		{"linux", "", "''"},
		{"linux", `C:\x`, `'C:\x'`},
		{"windows", `C:\Program Files\m.exe`, `"C:\Program Files\m.exe"`},
		{"windows", `C:\bin\m.exe`, `C:\bin\m.exe`},
	} {
		if got := shellWord(tt.goos, tt.word); got != tt.want {
			t.Errorf("shellWord(%s, %q) = %s, want %s", tt.goos, tt.word, got, tt.want)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	for _, word := range []string{"plain", "a b", "it's", `"$HOME"`, "`id`", "*", "~", "a\nb", `\`, "$(id)", "#", "a;b"} {
		got, err := exec.Command("sh", "-c", "printf %s "+shellWord("linux", word)).Output()
		if err != nil || string(got) != word {
			t.Errorf("a shell reads %s as %q: %v", shellWord("linux", word), got, err)
		}
	}
}
