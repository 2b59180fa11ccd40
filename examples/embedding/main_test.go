package main

import (
	"io"
	"strings"
	"testing"
)

// TestRun holds the example to what it shows: an answer of both sources, cited.
func TestRun(t *testing.T) {
	var out, progress strings.Builder
	if err := run(t.Context(), "What grows in dry soil in Utah?", &out, &progress); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"[1] shop/seeds.txt\n", " embedded:utah-", "asked files: answered", "asked shop: answered"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if !strings.Contains(progress.String(), "shop done: ") {
		t.Errorf("progress:\n%s", progress.String())
	}
}

func TestRefusesABlankQuestion(t *testing.T) {
	if err := run(t.Context(), " ", io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "question") {
		t.Errorf("got %v", err)
	}
}
