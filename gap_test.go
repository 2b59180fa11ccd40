package marchwarden

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"strconv"
	"testing"
)

// allCodes reads the constants of type Code out of error.go, so that a new one
// cannot be forgotten here.
func allCodes(t *testing.T) []Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "error.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []Code
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "Code" && len(spec.Values) == 1 {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, Code(text))
		}
		return true
	})
	if len(codes) < 10 {
		t.Fatalf("found %d codes in error.go", len(codes))
	}
	return codes
}

func TestEveryCodeHasAGapCategory(t *testing.T) {
	codes := allCodes(t)
	for _, c := range codes {
		category, ok := gapCategories[c]
		if !ok {
			t.Errorf("code %q is not in gapCategories: say what a caller can do about it", c)
		}
		if got := GapFor("a topic", Errorf(c, "it failed")); got != (Gap{"a topic", category, "it failed"}) {
			t.Errorf("GapFor with %q = %+v", c, got)
		}
		// A failed service is never missing sources.
		if (category == SourceNotFound) != (c == CodeNotFound) {
			t.Errorf("code %q becomes %s", c, category)
		}
	}
	if len(gapCategories) != len(codes) {
		t.Errorf("gapCategories has %d entries for %d codes", len(gapCategories), len(codes))
	}
}

func TestGapForOtherErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want GapCategory
	}{
		{errors.New("nobody classified this"), AccessDenied},
		{io.ErrUnexpectedEOF, AccessDenied},
		{context.Canceled, BudgetExhausted},
		{fmt.Errorf("search: %w", context.DeadlineExceeded), BudgetExhausted},
		{Errorf("from_the_future", "a newer version failed"), AccessDenied},
		{&Error{Message: "without a code"}, AccessDenied},
		{fmt.Errorf("read: %w", Errorf(CodeNotFound, "no such page")), SourceNotFound},
		{Wrap(Errorf(CodeNotFound, "no such host"), CodeUnavailable, "search"), AccessDenied},
	} {
		if got := GapFor("t", c.err); got.Category != c.want || got.Detail != c.err.Error() {
			t.Errorf("GapFor(%v) = %+v, want %s", c.err, got, c.want)
		}
	}
}

func TestCodeOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Code
	}{
		{nil, ""},
		{errors.New("x"), CodeInternal},
		{&Error{Message: "without a code"}, CodeInternal},
		{CodeDenied, CodeDenied},
		{fmt.Errorf("a: %w", fmt.Errorf("b: %w", Errorf(CodeCorrupt, "c"))), CodeCorrupt},
		{Wrap(Errorf(CodeNotFound, "inner"), CodeUnavailable, "outer"), CodeUnavailable},
		{Wrap(context.Canceled, CodeUnavailable, "outer"), CodeUnavailable},
		{fmt.Errorf("a: %w", context.Canceled), CodeCanceled},
		{errors.Join(io.EOF, Errorf(CodeExhausted, "x")), CodeExhausted},
	} {
		if got := CodeOf(c.err); got != c.want {
			t.Errorf("CodeOf(%v) = %q, want %q", c.err, got, c.want)
		}
	}
}

func TestErrorTextAndChain(t *testing.T) {
	cause := fmt.Errorf("disk: %w", io.ErrShortWrite)
	err := Wrap(cause, CodeUnavailable, "write %s", "x")
	if err.Error() != "write x: disk: short write" || !errors.Is(err, io.ErrShortWrite) || !errors.Is(err, CodeUnavailable) || errors.Is(err, CodeDenied) {
		t.Errorf("wrapped: %v", err)
	}
	if Wrap(nil, CodeInternal, "x") != nil {
		t.Error("wrapping nil is an error")
	}
	if got := (&Error{Code: CodeInvalid, Field: "depth", Message: "is wrong"}).Error(); got != "depth: is wrong" {
		t.Errorf("with a field: %q", got)
	}
}

func TestHintOf(t *testing.T) {
	inner := &Error{Code: CodeInvalid, Message: "m", Hint: "do this"}
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""}, {io.EOF, ""}, {inner, "do this"}, {fmt.Errorf("x: %w", inner), "do this"},
		{Wrap(inner, CodeInternal, "outer without a hint"), "do this"},
		{&Error{Code: CodeInternal, Hint: "first", Err: inner}, "first"},
		{Errorf(CodeDenied, "no hint at all"), ""},
	} {
		if got := HintOf(c.err); got != c.want {
			t.Errorf("HintOf(%v) = %q, want %q", c.err, got, c.want)
		}
	}
}

func TestGapCarriesTheHint(t *testing.T) {
	g := GapFor("x", Wrap(&Error{Code: CodeDenied, Message: "no", Hint: "check the key"}, CodeDenied, "ask"))
	if g.Detail != "ask: no (check the key)" {
		t.Error(g.Detail)
	}
}
