package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// Ctrl-C in a check or a collection says so, and what was found until then is printed.
func TestCheckAndGcAreInterrupted(t *testing.T) {
	o := unpack(t, "last.zip")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errInterrupted)
	for _, c := range []struct {
		args []string
		out  string
	}{
		{[]string{"check"}, "the check is not complete\n"},
		{[]string{"check", "--json"}, `"incomplete": true`},
		{[]string{"gc"}, ""},
	} {
		var out, said bytes.Buffer
		a := system()
		a.stdout, a.Stderr, a.Dir = &out, &said, o.home
		a.Env = func(name string) (string, bool) { return o.home, name == "MARCHWARDEN_HOME" }
		a.UserHome = func() (string, error) { return o.home, nil }
		code := command(ctx, a, c.args)
		if code != exitInterrupted || !strings.Contains(out.String(), c.out) || !strings.Contains(said.String(), "interrupted") || strings.Contains(said.String(), "context canceled") {
			t.Errorf("%v: exit %d\n%s%s", c.args, code, out.String(), said.String())
		}
		if strings.Contains(out.String(), "nothing is wrong") {
			t.Errorf("%v says that nothing is wrong", c.args)
		}
	}
}
