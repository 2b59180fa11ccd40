package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
)

// What a model may see of private sources is one rule, here and for a cluster: the one
// that was named, and no other.
func TestTerms(t *testing.T) {
	_, c := appHere(t, map[string]string{"MARCHWARDEN_HOME": filepath.Join(t.TempDir(), "kept"), "OPENAI_API_KEY": "sk-embed-3Hq8Tz1Wn5Yc"})
	private, web := dispatch.Member{Private: true}, dispatch.Member{OpenWorld: true}
	for _, tt := range []struct {
		name          string
		members       []dispatch.Member
		flag, begunBy string
		model         string
		sees          bool
	}{
		{"private alone", []dispatch.Member{private}, "", "", "", false},
		{"private, named", []dispatch.Member{private}, "ollama/x", "", "ollama/x", true},
		{"the web", []dispatch.Member{web}, "", "", "openai", false},
		{"both", []dispatch.Member{web, private}, "", "", "openai", false},
		{"both, named", []dispatch.Member{web, private}, "ollama/x", "", "ollama/x", true},
		{"goes on", []dispatch.Member{private}, "", "ollama/y", "ollama/y", false},
	} {
		got := network.TermsFor(c, tt.members, network.Options{Choice: marchwarden.Choice{Model: tt.flag}}, tt.begunBy)
		if got.Model.Name != tt.model || got.SeesPrivate != tt.sees ||
			got.Private != slices.Contains(tt.members, private) || got.Outside != slices.Contains(tt.members, web) {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

// A program that reads what a server logs gets JSON, as it does of every command.
func TestServerLogForPrograms(t *testing.T) {
	a, c := appHere(t, map[string]string{"MARCHWARDEN_HOME": filepath.Join(t.TempDir(), "kept")})
	var said bytes.Buffer
	a.Stderr = &said
	for reader, want := range map[listener]string{program: "{", people: "time="} {
		a.reader = reader
		said.Reset()
		a.serverLog(c).Info("a lamp")
		a.logger(c).Info("nobody needs this")
		if !strings.HasPrefix(said.String(), want) || strings.Count(said.String(), "\n") != 1 {
			t.Errorf("%v: %s", reader, said.String())
		}
	}
}
