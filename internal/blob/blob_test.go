package blob_test

import (
	"errors"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
)

func TestEvidence(t *testing.T) {
	store := blob.NewMem()
	ref, err := store.Put(t.Context(), []byte("a page"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, hash, want string
		code             marchwarden.Code
	}{
		{"stored", ref.String(), "a page", ""},
		{"never stored", blob.Of([]byte("another page")).String(), "", marchwarden.CodeNotFound},
		{"no hash", "sha256:abc", "", marchwarden.CodeInvalid},
		{"empty", "", "", marchwarden.CodeInvalid},
	} {
		got, err := blob.Evidence(t.Context(), store, c.hash)
		if string(got) != c.want || (c.code == "") != (err == nil) || err != nil && (!errors.Is(err, c.code) || marchwarden.CodeOf(err) != c.code) {
			t.Errorf("%s: %q, %v, want %q with code %q", c.name, got, err, c.want, c.code)
		}
	}
}
