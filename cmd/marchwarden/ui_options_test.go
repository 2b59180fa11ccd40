package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// What is wrong is found before anything is made or printed, and named by its flag.
func TestUIOptions(t *testing.T) {
	t.Parallel()
	none := filepath.Join(t.TempDir(), "none.pem")
	for name, tt := range map[string]struct {
		o     uiOptions
		field string // of the error; "" is none
		local bool
	}{
		"as it is":               {o: uiOptions{listen: uiPort}, local: true},
		"a port":                 {o: uiOptions{listen: "9000"}, local: true},
		"any port":               {o: uiOptions{listen: "localhost:0"}, local: true},
		"IPv6":                   {o: uiOptions{listen: "[::1]:0"}, local: true},
		"everywhere":             {o: uiOptions{listen: ":9000"}},
		"everywhere by IPv4":     {o: uiOptions{listen: "0.0.0.0:9000"}},
		"everywhere by IPv6":     {o: uiOptions{listen: "[::]:9000"}},
		"a name":                 {o: uiOptions{listen: "research.example.org:9000"}},
		"no address":             {o: uiOptions{listen: "127.0.0.1"}, field: "--listen"},
		"no port":                {o: uiOptions{listen: "127.0.0.1:99999"}, field: "--listen"},
		"half a certificate":     {o: uiOptions{listen: uiPort, door: doorOptions{cert: none}}, field: "--tls-cert"},
		"the other half":         {o: uiOptions{listen: uiPort, door: doorOptions{key: none}}, field: "--tls-cert"},
		"no certificate":         {o: uiOptions{listen: uiPort, door: doorOptions{cert: none, key: none}}, field: "--tls-cert"},
		"a bad host":             {o: uiOptions{listen: uiPort, door: doorOptions{hosts: []string{"https://example.org"}}}, field: "--allowed-hosts"},
		"a proxy":                {o: uiOptions{listen: uiPort, door: doorOptions{publicURL: "https://research.example.org"}}, local: true},
		"a proxy at a port":      {o: uiOptions{listen: uiPort, door: doorOptions{publicURL: "http://research.example.org:81/"}}, local: true},
		"a proxy by name":        {o: uiOptions{listen: uiPort, door: doorOptions{publicURL: "research.example.org"}}, field: "--public-url"},
		"a proxy with a path":    {o: uiOptions{listen: uiPort, door: doorOptions{publicURL: "https://example.org/research"}}, field: "--public-url"},
		"a proxy of a user":      {o: uiOptions{listen: uiPort, door: doorOptions{publicURL: "https://me@example.org"}}, field: "--public-url"},
		"a proxy without a host": {o: uiOptions{listen: uiPort, door: doorOptions{publicURL: "https:///"}}, field: "--public-url"},
		"a proxy of a file":      {o: uiOptions{listen: uiPort, door: doorOptions{publicURL: "file:///etc"}}, field: "--public-url"},
	} {
		tt.o.maxRuns = 4
		_, local, err := tt.o.check()
		var e *marchwarden.Error
		switch {
		case tt.field == "" && (err != nil || local != tt.local):
			t.Errorf("%s: local %v, %v", name, local, err)
		case tt.field != "" && (!errors.As(err, &e) || e.Field != tt.field || e.Code != marchwarden.CodeInvalid):
			t.Errorf("%s: %v, want one of %s", name, err, tt.field)
		}
	}
	for public, secure := range map[string]bool{"": false, "http://a.example": false, "HTTPS://a.example:8": true} {
		o := uiOptions{listen: uiPort, door: doorOptions{hosts: []string{"b.example"}, publicURL: public}}
		_, _, err := o.check()
		if err != nil || o.secure() != secure || o.door.hosts[0] != "b.example" || (len(o.door.hosts) == 2) != (public != "") {
			t.Errorf("%q: %v, secure %v, known by %q", public, err, o.secure(), o.door.hosts)
		}
	}
}

// Whichever researcher is chosen on the page, what the program was started with for others is no
// fault.
func TestAnybodyCanBeChosen(t *testing.T) {
	t.Parallel()
	_, c := appHere(t, map[string]string{"MARCHWARDEN_HOME": t.TempDir()})
	base := network.Options{Choice: marchwarden.Choice{Library: []string{"papers"}, Embedded: true, DB: "harbour.db", Search: "wikipedia", Online: true, AllowEgress: []string{researcher.FilesName}}}
	for chosen := 1; chosen < 1<<len(settings.Builtin); chosen++ {
		var names []string
		for i, name := range settings.Builtin {
			if chosen&(1<<i) != 0 {
				names = append(names, name)
			}
		}
		o := base.Narrowed(names)
		o.Researchers = names
		if err := o.Check(c, settings.PI); err != nil {
			t.Errorf("%q: %v", names, err)
		}
		if got := slices.Contains(names, researcher.FilesName); got != (len(o.Library) > 0) || got != o.Embedded {
			t.Errorf("%q: the library is %q", names, o.Library)
		}
		if slices.Contains(names, database.Name) != (o.DB != "") {
			t.Errorf("%q: the database is %q", names, o.DB)
		}
	}
}

// A resumed run keeps those who were asked, whatever the settings and the program have for others.
func TestGoingOnWithTheChosen(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	lib := filepath.Join(home, "papers")
	if err := os.Mkdir(lib, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(lib, "tides.md"), []byte("Tides are caused by the pull of the Moon.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"MARCHWARDEN_HOME": home, "MARCHWARDEN_LIBRARY": lib, "MARCHWARDEN_DB": filepath.Join(home, "harbour.db")}
	for _, chosen := range []string{"--researchers=files", "--researcher=files"} {
		var out strings.Builder
		program := func(args ...string) int {
			a, _ := appHere(t, env)
			out.Reset()
			a.stdout, a.Stderr = io.Discard, &out
			return command(t.Context(), a, args)
		}
		if code := program("ask", "-q", chosen, "What causes tides?"); code != exitOK {
			t.Fatalf("%s: ask ends with %d: %s", chosen, code, out.String())
		}
		if code := program("resume", "-q", "last"); code != exitOK {
			t.Errorf("%s: resume ends with %d: %s", chosen, code, out.String())
		}
		a, c := appHere(t, env)
		rec, err := a.OpenRecords(c)
		if err != nil {
			t.Fatal(err)
		}
		id, err := run.FindID(rec.Traces, "last")
		if err != nil {
			t.Fatal(err)
		}
		page := network.PerQuestion{Host: &a.Host, Settings: c, Records: rec, Base: network.Options{Choice: marchwarden.Choice{DB: "postgres://me:secret@127.0.0.1/harbour"}}}
		o, err := page.Options(t.Context(), marchwarden.Request{Resume: id.String()})
		if err == nil {
			err = o.Check(c, network.ResearcherFor(c, o))
		}
		if err != nil || o.DB != "" || !slices.Equal(o.Library, []string{lib}) {
			t.Errorf("%s: on the page it goes on with %+v, %v", chosen, o, err)
		}
		if err := rec.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A record without a choice, as earlier versions wrote it, is not asked.
func TestNeverBegun(t *testing.T) {
	t.Parallel()
	if _, err := (&network.PerQuestion{}).Options(context.Background(), marchwarden.Request{Question: "What causes tides?"}); !errors.Is(err, marchwarden.CodeCanceled) || errors.Is(err, trace.ErrGoing) {
		t.Errorf("it says %v", err)
	}
}
