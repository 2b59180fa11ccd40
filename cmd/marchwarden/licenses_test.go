package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// The notices name every module that is linked into the program, at its version.
func TestLicenses(t *testing.T) {
	var printed bytes.Buffer
	a := world(t, nil)
	a.stdout = &printed
	if code := command(t.Context(), a, []string{"licenses"}); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	said := printed.String()
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range strings.Fields(strings.ReplaceAll(string(out), " ", "@")) {
		if !strings.Contains(said, "= "+strings.Replace(module, "@", " ", 1)+"\n") {
			t.Errorf("the notices do not name %s: run .ci/notices.sh", module)
		}
	}
	for _, words := range []string{"Apache License", "all-MiniLM-L6-v2", "reader.q8", "Copyright 2014 The PDFium Authors"} {
		if !strings.Contains(said, words) {
			t.Errorf("the notices do not say %q", words)
		}
	}
}
