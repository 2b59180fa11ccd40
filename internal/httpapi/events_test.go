package httpapi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestEvents(t *testing.T) {
	broken := errors.New("cut")
	for in, want := range map[string][]string{
		"":                                         nil,
		"\n\n\n":                                   nil,
		"data: a\n\n":                              {"|a"},
		"data:a\n\ndata:  b\n\n":                   {"|a", "| b"},
		"event: x\ndata: a\ndata: b\n\n":           {"x|a\nb"},
		"event: x\r\ndata: a\r\n\r\n":              {"x|a"},
		": sign of life\n\nid: 7\ndata: a\n\n":     {"|a"},
		"event: x\n\ndata: a\n\n":                  {"|a"}, // without data it is no event
		"data\n\n":                                 {"|"},
		"data: a\n\ndata: unfinished":              {"|a"},
		"data: a\n\ndata: unfinished\n":            {"|a"},
		"data: a\n\n" + strings.Repeat("x", 9_000): {"|a"},
	} {
		var got []string
		for e, err := range Events(io.MultiReader(iotest.OneByteReader(strings.NewReader(in)), iotest.ErrReader(broken))) {
			if err != nil {
				got = append(got, err.Error())
				continue
			}
			got = append(got, fmt.Sprintf("%s|%s", e.Name, e.Data))
		}
		if diff := cmp.Diff(append(want, "cut"), got); diff != "" {
			t.Errorf("%.40q: %s", in, diff)
		}
	}
}

func TestEventsBoundALine(t *testing.T) {
	for _, err := range Events(strings.NewReader("data: " + strings.Repeat("x", longestLine))) {
		if !errors.Is(err, bufio.ErrTooLong) {
			t.Errorf("%v", err)
		}
	}
}
