package fetchtest

import (
	"context"
	"errors"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"github.com/google/go-cmp/cmp"
)

var _ fetch.Fetcher = (*Fake)(nil)

func TestFake(t *testing.T) {
	boom := marchwarden.Errorf(marchwarden.CodeDenied, "boom")
	f := &Fake{
		Store: blob.NewMem(), Texts: map[string]string{"a": "text", "slow": "late", "image": "bytes"},
		Pages: map[string]fetch.Page{"a": {Title: "A", Origin: "example.org"}, "image": {NonText: true}},
		Errs:  map[string]error{"bad": boom}, Delay: map[string]time.Duration{"slow": time.Hour},
	}
	page, err := f.Fetch(t.Context(), "a")
	if err != nil || page.Title != "A" || page.Origin != "example.org" || page.Locator != "a" || page.Source != "file" {
		t.Errorf("page %+v, %v", page, err)
	}
	if text, err := f.Store.Get(t.Context(), page.Text); err != nil || string(text) != "text" {
		t.Errorf("text %q, %v", text, err)
	}
	if page, err := f.Fetch(t.Context(), "image"); err != nil || !page.NonText || page.Text.Valid() || !page.Raw.Valid() {
		t.Errorf("page %+v, %v; want bytes only", page, err)
	}
	if _, err := f.Fetch(t.Context(), "bad"); !errors.Is(err, boom) {
		t.Errorf("got %v, want %v", err, boom)
	}
	if _, err := f.Fetch(t.Context(), "none"); !errors.Is(err, marchwarden.CodeNotFound) {
		t.Errorf("got %v, want %v", err, marchwarden.CodeNotFound)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := f.Fetch(ctx, "slow"); !errors.Is(err, marchwarden.CodeCanceled) {
		t.Errorf("got %v, want %v", err, marchwarden.CodeCanceled)
	}
	if diff := cmp.Diff([]string{"a", "image", "bad", "none", "slow"}, f.Fetched()); diff != "" {
		t.Errorf("fetched (-want +got):\n%s", diff)
	}
}
