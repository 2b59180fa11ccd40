package search_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/searchtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is an engine that has one hit for "q", named after itself.
func fake(name string) *searchtest.Fake {
	return &searchtest.Fake{Title: name, Hits: map[string][]search.Hit{"q": {{Locator: "https://" + name + ".example/", Title: name, Score: 1}}}}
}

func failing(name string, code marchwarden.Code) *searchtest.Fake {
	return &searchtest.Fake{Title: name, Err: &marchwarden.Error{Code: code, Message: name + ": broken", Hint: "mend " + name}}
}

func titles(hits []search.Hit) string {
	var names []string
	for _, h := range hits {
		names = append(names, h.Title)
	}
	return strings.Join(names, " ")
}

func TestChain(t *testing.T) {
	plain := &searchtest.Fake{Title: "plain", Err: errors.New("boom")}
	missing := &searchtest.Fake{Title: "missing", Err: marchwarden.Errorf(marchwarden.CodeNotFound, "no index")}
	for _, tt := range []struct {
		name    string
		engines []search.Engine
		hits    string
		code    marchwarden.Code
		text    string
	}{
		{"first answers", []search.Engine{fake("a"), fake("b")}, "a", "", ""},
		{"first fails", []search.Engine{failing("a", marchwarden.CodeDenied), fake("b")}, "b", marchwarden.CodeDenied, "1 of 2 search engines failed: a: broken"},
		{"two fail", []search.Engine{failing("a", marchwarden.CodeTimeout), failing("b", marchwarden.CodeDenied), fake("c")}, "c", marchwarden.CodeTimeout, "2 of 3 search engines failed: a: broken; b: broken"},
		{"all fail", []search.Engine{failing("a", marchwarden.CodeRateLimited), failing("b", marchwarden.CodeDenied)}, "", marchwarden.CodeRateLimited, "2 of 2 search engines failed: a: broken; b: broken"},
		{"only one", []search.Engine{failing("a", marchwarden.CodeMalformed)}, "", marchwarden.CodeMalformed, "the search engine failed: a: broken"},
		{"no code", []search.Engine{plain, fake("b")}, "b", marchwarden.CodeInternal, "1 of 2 search engines failed: plain: boom"},
		{"never not found", []search.Engine{missing, fake("b")}, "b", marchwarden.CodeUnavailable, "1 of 2 search engines failed: missing: no index"},
		{"no hits", []search.Engine{&searchtest.Fake{Title: "a"}, fake("b")}, "b", "", ""},
		{"no hits anywhere", []search.Engine{&searchtest.Fake{Title: "a"}, &searchtest.Fake{Title: "b"}}, "", "", ""},
		{"fails, then no hits", []search.Engine{failing("a", marchwarden.CodeTimeout), &searchtest.Fake{Title: "b"}}, "", marchwarden.CodeTimeout, "1 of 2 search engines failed: a: broken"},
		{"no hits, then fails", []search.Engine{&searchtest.Fake{Title: "a"}, failing("b", marchwarden.CodeTimeout)}, "", marchwarden.CodeTimeout, "1 of 2 search engines failed: b: broken"},
		{"nobody", nil, "", marchwarden.CodeUnavailable, "no search engine is configured"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			hits, err := search.Chain(tt.engines...).Search(t.Context(), search.Query{Text: "q", Limit: 5})
			if titles(hits) != tt.hits || marchwarden.CodeOf(err) != tt.code || errors.Is(err, marchwarden.CodeNotFound) {
				t.Errorf("hits %q and %v (%s), want %q and %s", titles(hits), err, marchwarden.CodeOf(err), tt.hits, tt.code)
			}
			if err != nil && err.Error() != tt.text {
				t.Errorf("error %q, want %q", err, tt.text)
			}
		})
	}
	c := search.Chain(fake("tavily"), fake("brave"))
	if c.Name() != "tavily+brave" {
		t.Errorf("name %q", c.Name())
	}
	_, err := search.Chain(failing("a", marchwarden.CodeTimeout), failing("b", marchwarden.CodeDenied)).Search(t.Context(), search.Query{Text: "q"})
	if !errors.Is(err, marchwarden.CodeDenied) || marchwarden.HintOf(err) != "mend a" {
		t.Errorf("codes are lost in %v, hint %q", err, marchwarden.HintOf(err))
	}
}

// TestChainAsksNoMore: the first engine had an answer; the second is not asked.
func TestChainAsksNoMore(t *testing.T) {
	b := fake("b")
	if _, err := search.Chain(fake("a"), b).Search(t.Context(), search.Query{Text: "q", Limit: 5}); err != nil || len(b.Queries()) != 0 {
		t.Errorf("%v, %d questions to the second engine", err, len(b.Queries()))
	}
}

func TestChainCanceled(t *testing.T) {
	b := fake("b")
	c := search.Chain(&searchtest.Fake{Title: "slow", Delay: time.Hour}, b)
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		hits, err := c.Search(ctx, search.Query{Text: "q"})
		cancel()
		if len(hits) != 0 || marchwarden.CodeOf(err) != marchwarden.CodeCanceled {
			t.Errorf("%v, %v", hits, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := search.Chain(b).Search(ctx, search.Query{Text: "q"}); marchwarden.CodeOf(err) != marchwarden.CodeCanceled || len(b.Queries()) != 0 {
		t.Errorf("%v after %d questions", err, len(b.Queries()))
	}
}

// partial gives hits together with an error.
type partial struct{ *searchtest.Fake }

func (p partial) Search(context.Context, search.Query) ([]search.Hit, error) {
	return p.Hits["q"], p.Err
}

func TestChainMerges(t *testing.T) {
	a := partial{&searchtest.Fake{Title: "a", Err: marchwarden.Errorf(marchwarden.CodeTimeout, "page 2"), Hits: map[string][]search.Hit{"q": {
		{Locator: "https://one.example/", Title: "one", Score: 0.1}, {Locator: "notes/local.md", Title: "local"},
	}}}}
	b := &searchtest.Fake{Title: "b", Hits: map[string][]search.Hit{"q": {{Locator: "https://one.example/", Title: "again", Score: 7}, {Locator: "https://two.example/", Title: "two", Score: 6}, {Locator: "https://three.example/", Title: "three"}}}}
	got, err := search.Chain(a, b).Search(t.Context(), search.Query{Text: "q", Limit: 3})
	want := []search.Hit{
		{Locator: "https://one.example/", Title: "one", Score: 1}, {Locator: "notes/local.md", Title: "local", Score: 0.5}, {Locator: "https://two.example/", Title: "two", Score: 1.0 / 3},
	}
	if diff := cmp.Diff(want, got); diff != "" || marchwarden.CodeOf(err) != marchwarden.CodeTimeout {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestChainConcurrent(t *testing.T) {
	c := search.Chain(failing("a", marchwarden.CodeTimeout), fake("b"))
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 20 {
				if hits, err := c.Search(t.Context(), search.Query{Text: "q"}); titles(hits) != "b" || marchwarden.CodeOf(err) != marchwarden.CodeTimeout {
					t.Errorf("%v, %v", hits, err)
				}
			}
		})
	}
	wg.Wait()
}
