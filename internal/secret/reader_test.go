package secret

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

// TestTransport has a service repeat a key in a header and in pieces of its body.
func TestTransport(t *testing.T) {
	const key = "sk-A1b2C3d4E5f6"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Etag", `"`+key+`"`)
		for _, piece := range []string{"you sent ", key[:5], key[5:], " and data: ", key, "\n"} {
			_, _ = io.WriteString(w, piece)
			w.(http.Flusher).Flush()
		}
	}))
	defer server.Close()
	client := &http.Client{Transport: New(key).Transport(http.DefaultTransport)}
	defer client.CloseIdleConnections()
	resp, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(iotest.OneByteReader(resp.Body))
	if err != nil {
		t.Fatal(err)
	}
	if want := "you sent REDACTED and data: REDACTED\n"; string(got) != want {
		t.Errorf("body %q, want %q", got, want)
	}
	if e := resp.Header.Get("Etag"); e != `"REDACTED"` {
		t.Errorf("header %q", e)
	}
}

// TestABodyThatBreaksOff keeps how it ended, and what came before.
func TestABodyThatBreaksOff(t *testing.T) {
	broken := errors.New("cut")
	b := New("sk-A1b2C3d4E5f6").body(io.NopCloser(io.MultiReader(strings.NewReader("text sk-A1b2"), iotest.ErrReader(broken))))
	got, err := io.ReadAll(b)
	if string(got) != "text sk-A1b2" || !errors.Is(err, broken) {
		t.Errorf("%q, %v", got, err)
	}
}
