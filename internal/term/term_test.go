package term

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

var sgrPattern = regexp.MustCompile("\x1b\\[[0-9;]*m")

func stripSGR(s string) string { return sgrPattern.ReplaceAllString(s, "") }

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestWriteErrors(t *testing.T) {
	if err := (Style{}).Table(failing{}, []string{"a"}, nil); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Table: %v", err)
	}
	if _, err := (Style{}).NewPage().WriteTo(failing{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("WriteTo: %v", err)
	}
}

func ExampleStyle_Error() {
	Style{}.Error(os.Stdout, fmt.Errorf("ask: %w", &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "depth", Message: "must be shallow, balanced or deep, not \"x\x1b[31m\"", Hint: "leave it out for balanced"}))
	Style{}.Warn(os.Stdout, "a.pdf could not be read\nand more")
	Style{}.Error(os.Stdout, nil)
	// Output:
	// marchwarden: error: ask: depth: must be shallow, balanced or deep, not "x"
	// marchwarden: hint: leave it out for balanced
	// marchwarden: warning: a.pdf could not be read and more
}
