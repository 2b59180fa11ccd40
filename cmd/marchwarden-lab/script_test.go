package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scripttest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"marchwarden-lab": main})
}

// key is a secret that must not be found in what a run keeps.
const key = "sk-not-a-real-key-0123456789"

// TestLabScripts runs the commands as processes, each script in a folder and a home of its
// own. $MODELS is a provider of language models, and $KEY its key. The condition [program]
// says that the program itself is in PATH as marchwarden: it is built, which takes a while,
// where MARCHWARDEN_TEST_FULL is set.
func TestLabScripts(t *testing.T) {
	models := llmtest.NewServer(t, webtest.Obedient)
	bin := t.TempDir()
	if datatest.Full() {
		if out, err := exec.Command("go", "build", "-ldflags=-w", "-o", bin, "../marchwarden").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Condition: func(cond string) (bool, error) {
			if cond != "program" {
				return false, fmt.Errorf("there is no condition %q", cond)
			}
			return datatest.Full(), nil
		},
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			e.Setenv("HOME", home)
			e.Setenv("KEPT", filepath.Join(home, ".marchwarden"))
			e.Setenv("MODELS", models.URL())
			e.Setenv("KEY", key)
			e.Setenv("PATH", bin+string(filepath.ListSeparator)+e.Getenv("PATH"))
			tb := e.T().(testing.TB) // a script is run by a test
			e.Defer(func() { noKey(tb, e.WorkDir) })
			return os.MkdirAll(home, 0o700)
		},
		Cmds:                scripttest.With(nil),
		RequireExplicitExec: true,
	})
}

// noKey looks for the key in all that a script has left.
func noKey(tb testing.TB, dir string) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(key)) {
			tb.Errorf("the key is in %s", path)
		}
		return err
	})
	if err != nil {
		tb.Error(err)
	}
}
