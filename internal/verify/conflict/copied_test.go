package conflict

import (
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
)

func addPage(set *evidence.Set, locator, title, text string) {
	set.Add(fetch.Page{Locator: locator, Title: title, Text: blob.Of([]byte(text))}, text)
}

// Texts of which one is a copy of the other, labels without a sentence, and things that
// share a name.
func TestContradictionsOfCopies(t *testing.T) {
	const (
		opera  = "Who is the conductor of the opera Harbour Lights?"
		sort   = "What sport is Ilmari Kalo known for?"
		saint  = "When is the feast day of Saint Orwen?"
		born   = "When was Admiral Penrose born?"
		father = "Who was Queen Maud's father?"
	)
	for _, c := range []struct {
		name, question, a, b string
		va, vb               string // the values reported; both "" when none is
	}{
		{"a copy without the name asked about", opera, "Harbour Lights is an opera. The first night under Mara Quill drew a crowd from all over the county and the takings went to a hospital.",
			"The first night under Owen Pryce drew a crowd from all over the county and the takings went to a hospital.", "Mara Quill", "Owen Pryce"},
		{"other words around", opera, "Harbour Lights is an opera. The first night under Mara Quill drew a crowd from all over the county and the takings went to a hospital.",
			"The opera house in which Owen Pryce learnt to sing stands by the river and was rebuilt after a fire in the year of the floods.", "", ""},
		{"a word for a sort of thing", sort, "Ilmari Kalo (born Ylinen, 14 November 1909) was a Finnish skier who competed at the 1936 Winter Olympics in Garmisch.",
			"Ilmari Kalo (born Ylinen, 14 November 1909) was a Finnish boxer who competed at the 1936 Winter Olympics in Garmisch.", "skier", "boxer"},
		{"labels", saint, "Saint Orwen Born in Capua , Campania Venerated in Trent , Ravenna and Aquileia Feast 7 October",
			"Saint Orwen Born: Capua, Campania Venerated in: Trent, Ravenna, Aquileia Feast: 15 January", "7 October", "15 January"},
		{"namesakes", born, "Admiral George Penrose was born on 1 May 1850 in Plymouth and served on the Australia Station under Lord Tyne in the Royal Navy.",
			"Admiral Herbert Penrose was born on 3 June 1862 in Plymouth and served on the Australia Station under Lord Tyne in the Royal Navy.", "", ""},
		{"one man", born, "Admiral George Penrose was born on 1 May 1850 in Plymouth and served on the Australia Station under Lord Tyne in the Royal Navy.",
			"Admiral George Penrose was born on 3 June 1862 in Plymouth and served on the Australia Station under Lord Tyne in the Royal Navy.", "1 May 1850", "3 June 1862"},
		{"whose daughter", father, "Queen Maud of Northmark ruled from Uppsborg until the war with Harland and Gotmark. She was the daughter of Eric Long and Astrid.",
			"Queen Maud of Northmark ruled from Uppsborg until the war with Harland and Gotmark. She was a daughter of Sven Short and Astrid.", "Eric Long", "Sven Short"},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := &evidence.Set{}
			addPage(set, "a.md", "a.md", c.a) // the name of a file is no title
			addPage(set, "b.md", "b.md", c.b)
			got := Find(c.question, set, ids(set))
			if c.va == "" {
				if len(got) > 0 {
					t.Fatalf("false alarm: %+v", got)
				}
				return
			}
			if len(got) != 1 || got[0].A.Value != c.va || got[0].B.Value != c.vb {
				t.Errorf("%+v, want %q and %q", got, c.va, c.vb)
			}
		})
	}
}
