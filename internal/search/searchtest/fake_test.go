package searchtest

import (
	"context"
	"errors"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

var _ search.Engine = (*Fake)(nil)

func TestFake(t *testing.T) {
	boom := marchwarden.Errorf(marchwarden.CodeUnavailable, "boom")
	f := &Fake{
		Hits: map[string][]search.Hit{"q": {{Locator: "a", Score: 2}, {Locator: "b", Score: 1}}},
		Errs: map[string]error{"bad": boom},
	}
	if hits := mustSearch(t, f, "q", 1); len(hits) != 1 || hits[0].Locator != "a" {
		t.Errorf("hits %v, want a only", hits)
	}
	if hits := mustSearch(t, f, "other", 5); len(hits) != 0 {
		t.Errorf("hits %v, want none", hits)
	}
	if _, err := f.Search(t.Context(), search.Query{Text: "bad"}); !errors.Is(err, boom) {
		t.Errorf("got %v, want %v", err, boom)
	}
	if got := f.Queries(); len(got) != 3 || got[2].Text != "bad" || f.Name() != "fake" {
		t.Errorf("queries %v of %s", got, f.Name())
	}
	slow := &Fake{Title: "slow", Delay: time.Hour}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := slow.Search(ctx, search.Query{Text: "q"}); !errors.Is(err, marchwarden.CodeCanceled) {
		t.Errorf("got %v, want %v", err, marchwarden.CodeCanceled)
	}
}
