package mcpkit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"strconv"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

func TestBrokenResearchers(t *testing.T) {
	nan := sample("x [1]")
	nan.Confidence = marchwarden.Unit(math.NaN())
	over := sample("x [1]")
	over.Confidence = 1.5
	for name, tc := range map[string]struct {
		res  *marchwarden.Result
		err  error
		log  string
		said string // "" is an internal error
	}{
		"neither":      {nil, nil, "neither a result nor an error", ""},
		"NaN":          {nan, nil, "encode the result", "the result breaks the contract: encode the result: "},
		"out of range": {over, nil, "breaks the contract", "the result breaks the contract: validating root: validating /properties/confidence: "},
		"unclassified": {nil, errors.New("disk /dev/sda1 on fire\ngoroutine 1 [running]:"), "on fire", ""},
		"unknown code": {nil, marchwarden.Errorf("novel", "novel failure"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, log := newTestServer(t, scripted(func(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) {
				return tc.res, tc.err
			}))
			res := rawCall(t, s, `{"name":"research","arguments":{"question":"q"}}`)
			want := cmp.Or(tc.said, "internal error: this call failed, others are not affected\nhint: the server's log has the details")
			if got := textOf(t, res); !res.IsError || !strings.HasPrefix(got, want) {
				t.Errorf("got %q", got)
			}
			if !strings.Contains(log.String(), tc.log) {
				t.Errorf("the log lacks %q: %s", tc.log, log)
			}
		})
	}
}

func TestFailureTable(t *testing.T) {
	for code, hint := range words.Hints {
		t.Run(string(code), func(t *testing.T) {
			if hint == "" {
				t.Error("no hint")
			}
			cause := errors.New("cause\ngoroutine 7 [running]:\nmain.go:1")
			err := fmt.Errorf("ask: %w", marchwarden.Wrap(cause, code, "reading the source failed"))
			text := textOf(t, failure(err))
			if strings.Contains(text, "goroutine") || strings.Contains(text, "main.go") {
				t.Errorf("a stack got out: %q", text)
			}
			if shown := strings.Contains(text, "reading the source failed: cause"); shown != (code != marchwarden.CodeInternal) {
				t.Errorf("got %q", text)
			}
			if !strings.HasSuffix(text, "\nhint: "+hint) {
				t.Errorf("got %q, want the hint %q", text, hint)
			}
		})
	}
	own := failure(&marchwarden.Error{Code: marchwarden.CodeDenied, Message: "no", Hint: "log in first"})
	if got := textOf(t, own); got != "no\nhint: log in first" {
		t.Errorf("an error's own hint: got %q", got)
	}
}

// TestEveryCodeHasAHint reads the contract's source, so that a new code
// cannot be forgotten here.
func TestEveryCodeHasAHint(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../error.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Code") || len(spec.Values) == 0 {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		found++
		if _, ok := words.Hints[marchwarden.Code(value)]; !ok {
			t.Errorf("%s has no hint", spec.Names[0].Name)
		}
		return true
	})
	if found != len(words.Hints) {
		t.Errorf("the contract has %d codes, the table %d", found, len(words.Hints))
	}
}
