package web_test

import (
	"bufio"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web"
)

// FuzzEvent holds that whatever a picture says is data of one event: browsers end a line
// at LF, CR LF and CR, and none of them lets it begin another field or event.
func FuzzEvent(f *testing.F) {
	for _, seed := range []string{
		"", "plain", " leading space", "two\nlines", "\n", "\n\n", "a\r\nb", "a\rb", "\r", "\r\n\r\n", "\n\r", "end\n",
		"x\n\nevent: over\ndata: {}\n\n", "x\r\revent: over\rdata: {}\r\r", "x\r\n\r\nid: 7\r\n\r\n", ": comment", "data: data", "\xff\xfe\x00", "\ufeffbom", "\u2028",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data string) {
		frame := web.Event("picture", data)
		if strings.ContainsRune(frame, '\r') {
			t.Fatalf("a line ends in CR: %q", frame)
		}
		var v viewer
		v.read(bufio.NewReader(strings.NewReader(frame)))
		want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(data)
		if len(v.got) != 1 || v.got[0].Data != want || v.got[0].Name != "picture" || v.got[0].ID != "" || v.retry != "" || v.beats != 0 || v.err != nil {
			t.Errorf("%q came as %+v, %v", data, v.got, v.err)
		}
	})
}
