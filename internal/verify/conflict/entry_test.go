package conflict

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
)

func TestEntryIsWhatAnArticleIsAbout(t *testing.T) {
	for _, tt := range []struct {
		name, title, text string
		want              string
	}{
		{"place", "", "Lake Mills, Iowa Lake Mills is a city in Winnebago County.", "iowa lake mill"},
		{"article between", "", "Harbour Lights (1931 film) The Harbour Lights is a drama.", "1931 film harbour light"},
		{"title", "Harbour Lights (1931 film)", "Harbour Lights is a drama of 1931.", "1931 film harbour light"},
		{"no heading", "", "The town has a mill. It was built in 1880.", ""},
		{"title of a report", "Prices of kettles", "Copper is dear this year.", ""},
		{"empty", "", "", ""},
	} {
		set := &evidence.Set{}
		set.Add(fetch.Page{Locator: "a.txt", Title: tt.title, Text: blob.Of([]byte(tt.text))}, tt.text)
		for _, src := range set.Sources() {
			if got := strings.Join(entryOf(src).words, " "); got != tt.want {
				t.Errorf("%s: entry %q, want %q", tt.name, got, tt.want)
			}
		}
	}
}

func TestArticlesOnNamesakesDoNotContradict(t *testing.T) {
	const question = `Who is the director of the film "Harbour Lights"?`
	find := func(texts ...string) int {
		set := &evidence.Set{}
		var ids []evidence.ID
		for i, text := range texts {
			set.Add(fetch.Page{Locator: string(rune('a'+i)) + ".txt", Text: blob.Of([]byte(text))}, text)
		}
		for _, p := range set.Passages() {
			ids = append(ids, p.ID)
		}
		return len(Find(question, set, ids))
	}
	first := "Harbour Lights (1931 film) Harbour Lights is a 1931 British drama film directed by Edwin Marlow. It was shot in Whitby for Gainsford Studios and stars Ada Penrose."
	other := "Harbour Lights (1958 film) Harbour Lights is a 1958 British drama film directed by Ruth Calloway. It was shot in Whitby for Gainsford Studios and stars Joan Penrose."
	same := "Categories: 1931 films British drama films. The film Harbour Lights, a 1931 film by Quentin Abbot, had its first night in Leeds."
	for _, tt := range []struct {
		name  string
		texts []string
		want  int
	}{
		{"two films of one name", []string{first, other}, 0},
		{"one film, called so in full", []string{first, same}, 1},
	} {
		if diff := cmp.Diff(tt.want, find(tt.texts...)); diff != "" {
			t.Errorf("%s: reports (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestPercentagesAreNoCounts(t *testing.T) {
	a, b := newStatement(nil, "The town counted 232,055 people in 2010."), newStatement(nil, "The town counted 39.9% of people in 2010.")
	va, vb := slotAt(a, 3, 4), slotAt(b, 3, 4)
	if va.kind != aNumber || vb.kind != aNumber {
		t.Fatalf("values %+v and %+v are no numbers", va, vb)
	}
	if sameMeasure(a, b, va, vb) {
		t.Error("a count and a percentage were taken for one measure")
	}
	if !sameMeasure(a, a, va, va) {
		t.Error("a count is not of its own measure")
	}
}
