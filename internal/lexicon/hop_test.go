package lexicon

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	film  = HopText{Source: "film.md", Title: "Harbour Lights (film)", Sentences: []string{"Harbour Lights was directed by Mara Quill.", "It was shown in Trieste."}}
	asked = ReadQuestion("Where was the director of the film Harbour Lights born?", "")
)

func TestLeads(t *testing.T) {
	described := ReadQuestion("Who did the actor who played Benton Fraser have a child with?", "")
	for _, c := range []struct {
		name string
		q    Question
		read []HopText
		want []string // queries
	}{
		{"names, nearest first", asked, []HopText{film}, []string{"Mara Quill born", "Trieste born"}},
		{"a title that the question describes", described, []HopText{{Source: "gross.md", Title: "Paul Gross", Sentences: []string{"An actor who played Benton Fraser."}}}, []string{"Paul Gross child"}},
		{"no name", asked, []HopText{{Source: "a.md", Sentences: []string{"A director was born in March on a Monday."}}}, nil},
		{"nothing read", asked, nil, nil},
	} {
		var got []string
		for _, l := range NewMultiHop(&c.q, nil).Leads(c.read) {
			got = append(got, l.Query)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

// Of offers that have a name, the one that it is the title of comes before one that
// merely mentions it, and what adds to the question before what does not.
func TestLink(t *testing.T) {
	trail := NewMultiHop(&asked, nil)
	leads := trail.Leads([]HopText{film})
	link := func(source, title, snippet string) float64 {
		v, by := trail.Link(trail.Offer(source, title, snippet), leads)
		if (v > 0) != (by != nil) {
			t.Errorf("%s: %v by %v", title, v, by)
		}
		return v
	}
	about := link("quill.md", "Mara Quill", "She was born in Oslo.")
	silent := link("quill.md", "Mara Quill", "She likes tea.")
	mentions := link("x.md", "Festivals", "A prize went to Mara Quill.")
	if !(about > silent && silent > mentions && mentions > 0) {
		t.Errorf("about her %v, silent on it %v, mentions her %v: want them in this order", about, silent, mentions)
	}
	if v := link("x.md", "Festivals", "A prize was given."); v != 0 {
		t.Errorf("an offer without a name of a lead is worth %v", v)
	}
	if v := link("film.md", "Harbour Lights", "Mara Quill in Trieste."); v != 0 {
		t.Errorf("a lead leads back to where it was met: %v", v)
	}
}

// A word that stands everywhere says less than a rare one.
func TestRarity(t *testing.T) {
	q := ReadQuestion("film Harbour", "")
	trail := NewMultiHop(&q, []string{"film a", "film b", "film c", "Harbour"})
	common, rare := trail.Offer("a", "", "a film"), trail.Offer("b", "", "the Harbour")
	if common.Share >= rare.Share {
		t.Errorf("the common word shows %v of the question, the rare one %v", common.Share, rare.Share)
	}
	if o := trail.Offer("c", "Harbour (film)", ""); !o.Titled || o.Share < 0.999 {
		t.Errorf("%+v, want the question's own subject", o)
	}
}

// What a text leads to that is about something the question names comes before the names
// in a text that merely has some of its words; words that are written small elsewhere are
// no names, and a name that stands everywhere leads nowhere.
func TestWhatCountsMost(t *testing.T) {
	festival := HopText{Source: "x.md", Title: "Festivals", Sentences: []string{"At the film festival the director, born near Riga, spoke of Harbour Lights."}}
	first := func(shown []string, read ...HopText) string {
		leads := NewMultiHop(&asked, shown).Leads(read)
		if len(leads) == 0 {
			return ""
		}
		return leads[0].Name
	}
	if got := first(nil, festival, film); got != "Mara Quill" {
		t.Errorf("%q comes first, want what stands in the text on the film", got)
	}
	if got := first(nil, festival); got == "" {
		t.Error("where no text is about what the question names, all of them count")
	}
	quill := HopText{Source: "q.md", Title: "Quill", Sentences: []string{"A Quill is a pen."}}
	if got := first([]string{"a quill and a pen"}, quill); got != "" {
		t.Errorf("%q is no name: it is written small elsewhere", got)
	}
	two := HopText{Source: "film.md", Title: "Harbour Lights (film)", Sentences: []string{"Harbour Lights has Oslo and Trieste in it."}}
	if got := first([]string{"Oslo one", "Oslo two", "Oslo three", "Trieste"}, two); got != "Trieste" {
		t.Errorf("%q comes first, want the rarer name", got)
	}
}

// A title is called by a lead also together with words of the question, and a name is met
// only where its words follow each other.
func TestCalled(t *testing.T) {
	q := ReadQuestion("What is the airport in the city where Mara Quill was born?", "")
	trail := NewMultiHop(&q, nil)
	leads := trail.Leads([]HopText{{Source: "q.md", Title: "Mara Quill", Sentences: []string{"Mara Quill was born in Port Arden."}}})
	link := func(title, snippet string) float64 {
		v, _ := trail.Link(trail.Offer("x.md", title, snippet), leads)
		return v
	}
	airport, fair := link("Port Arden Airport", "It has one runway."), link("Port Arden Fair", "It has one airport.")
	if airport <= fair || fair <= 0 {
		t.Errorf("the airport %v, the fair %v: want them in this order", airport, fair)
	}
	if v := link("Arden", "The port of the village of Arden."); v != 0 {
		t.Errorf("words of a name that do not follow each other are worth %v", v)
	}
}
