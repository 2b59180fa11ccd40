package researcher_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/searchtest"
)

func TestTogether(t *testing.T) {
	a := &searchtest.Fake{Title: "a", Hits: map[string][]search.Hit{"mice": {{Locator: "arxiv:2101.00001", Title: "Mice asleep"}, {Locator: "arxiv:2101.00002", Title: "Mice awake"}, {Locator: "arxiv:2101.00003"}}}}
	b := &searchtest.Fake{Title: "b", Hits: map[string][]search.Hit{"mice": {{Locator: "doi:10.1000/1", Title: "Mice: asleep!"}, {Locator: "doi:10.1000/2", Title: "Rats"}, {Locator: "arxiv:2101.00003"}}}}
	e := researcher.Together(a, b)
	hits, err := e.Search(t.Context(), search.Query{Text: "mice", Limit: 3})
	want := []search.Hit{
		{Locator: "arxiv:2101.00001", Title: "Mice asleep", Score: 1}, {Locator: "arxiv:2101.00002", Title: "Mice awake", Score: 0.5}, {Locator: "doi:10.1000/2", Title: "Rats", Score: 1.0 / 3},
	}
	if diff := cmp.Diff(want, hits); diff != "" || err != nil || e.Name() != "a+b" {
		t.Errorf("%s %v (-want +got):\n%s", e.Name(), err, diff)
	}
	a.Err = marchwarden.Errorf(marchwarden.CodeRateLimited, "a: busy")
	hits, err = e.Search(t.Context(), search.Query{Text: "mice", Limit: 9})
	if len(hits) != 3 || marchwarden.CodeOf(err) != marchwarden.CodeRateLimited || !strings.Contains(err.Error(), "a: busy") {
		t.Errorf("%v %v", hits, err)
	}
	b.Err = marchwarden.Errorf(marchwarden.CodeUnavailable, "b: down")
	if hits, err = e.Search(t.Context(), search.Query{Text: "mice"}); len(hits) != 0 || marchwarden.CodeOf(err) != marchwarden.CodeRateLimited || !strings.Contains(err.Error(), "b: down") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v %v", hits, err)
	}
	if hits, err = e.Search(t.Context(), search.Query{Text: "mice"}); len(hits) != 0 || err == nil || len(a.Queries()) != 4 {
		t.Errorf("%v %v, asked %d times", hits, err, len(a.Queries()))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Search(ctx, search.Query{Text: "mice"}); !errors.Is(err, marchwarden.CodeCanceled) {
		t.Errorf("%v", err)
	}
}
