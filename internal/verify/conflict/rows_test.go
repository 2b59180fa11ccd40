package conflict

import (
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
)

func TestContradictionsOfRows(t *testing.T) {
	const kettle = "name: Copper kettle; price: 49.9."
	for _, c := range []struct {
		name, a, b string
		va, vb     string // the values reported; both "" when none is
	}{
		{"a sentence", kettle, "The price of the Copper kettle is 60.", "49.9", "60"},
		{"the other way round", "The price of the Copper kettle is 60.", kettle, "60", "49.9"},
		{"with a unit", kettle, "The price of the Copper kettle is about 60 euros in our shop.", "49.9", "60 euros"},
		{"possessive", kettle, "The Copper kettle's price is $60.", "49.9", "$60"},
		{"among other cells", "id: 3; name: Copper kettle; category: kitchen; unit_price: 49.9; stock: 12.", "The Copper kettle has a unit price of 60.", "49.9", "60"},
		{"counted", "name: Harn trial; patients: 110; town: Lowick.", "The Harn trial has 140 patients.", "110", "140 patients"},
		{"founded", "name: Ardmoor Observatory; founded: 1887; metres: 12.", "Ardmoor Observatory was founded in 1893.", "1887", "1893"},
		{"no name among the labels", "city: Harn; population: 4210.", "The population of Harn is 5,377.", "4210", "5,377"},
		{"two texts, both said", "country: Freedonia; city: Harn; population: 4210.", "The population of Harn in Freedonia is 5,377.", "4210", "5,377"},
		{"of its year", "name: Harn; year: 2011; population: 4210.", "The population of Harn in 2011 was 5,377.", "4210", "5,377"},

		{"agreeing", kettle, "The price of the Copper kettle is 49.90.", "", ""},
		{"rounded", kettle, "The price of the Copper kettle is about 50.", "", ""},
		{"another name", kettle, "The price of the Iron kettle is 60.", "", ""},
		{"a longer name", kettle, "The price of the Copper kettle stand is 60.", "", ""},
		{"part of a name", "name: Kettle; price: 49.9.", "The price of the Copper kettle is 60.", "", ""},
		{"another attribute", kettle, "The weight of the Copper kettle is 2.", "", ""},
		{"a narrower attribute", kettle, "The wholesale price of the Copper kettle is 40.", "", ""},
		{"a change", kettle, "The price of the Copper kettle rose by 10.", "", ""},
		{"a share", kettle, "The price of the Copper kettle is 60 % of the cost.", "", ""},
		{"a limit", kettle, "The price of the Copper kettle is below 60.", "", ""},
		{"denied", kettle, "The price of the Copper kettle is not 60.", "", ""},
		{"another number", kettle, "The price of the Copper kettle has 3 digits.", "", ""},
		{"of some year", kettle, "In 2019 the price of the Copper kettle was 60.", "", ""},
		{"of another year", "name: Harn; year: 2011; population: 4210.", "The population of Harn in 2021 was 5,377.", "", ""},
		{"the wrong text", "country: Freedonia; city: Harn; population: 4210.", "The population of Freedonia is 5,377,000.", "", ""},
		{"a key", "id: 3; name: Copper kettle.", "The id of the Copper kettle is 17.", "", ""},
		{"a question", kettle, "Is the price of the Copper kettle 60?", "", ""},

		{"two rows", kettle, "name: Copper kettle; price: 60.", "49.9", "60"},
		{"two rows, keys", "id: 4; status: open.", "id: 5; status: open.", "", ""},
		{"two rows, years", "name: Harn; year: 2011.", "name: Harn; year: 2021.", "", ""},
		{"two rows without labels", "4; open; Ann.", "5; open; Ann.", "", ""},
		{"two rows, named by number", "room: 4; beds: 2.", "room: 4; beds: 3.", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := &evidence.Set{}
			addPage(set, "a.csv", "", c.a)
			addPage(set, "b.md", "", c.b)
			got := Find("", set, ids(set))
			if c.va == "" {
				if len(got) > 0 {
					t.Fatalf("false alarm: %+v", got)
				}
				return
			}
			if len(got) != 1 {
				t.Fatalf("%d contradictions, want 1: %+v", len(got), got)
			}
			if got[0].A.Value != c.va || got[0].B.Value != c.vb {
				t.Errorf("values %q and %q, want %q and %q", got[0].A.Value, got[0].B.Value, c.va, c.vb)
			}
			if got[0].A.RawExcerpt != c.a || got[0].B.RawExcerpt != c.b || got[0].Subject == "" || got[0].Attribute == "" {
				t.Errorf("%+v", got[0])
			}
		})
	}
}

// TestContradictionsOfShortSentences asks about one thing: a sentence that does not
// name it, in a document that does not either, is of another.
func TestContradictionsOfShortSentences(t *testing.T) {
	for _, c := range []struct {
		question, a, b string
		want           int
	}{
		{"What price was agreed?", "The price agreed is 42,000 euros.", "The price agreed is 38,000 euros.", 1},
		{"What is the price of the kettle?", "The kettle is made in Harn. The price is 42 euros.", "The pan is made in Lowick. The price is 60 euros.", 0},
		{"What is the price of the kettle?", "The kettle is made in Harn. The price is 42 euros.", "The kettle comes with a lid. The price is 60 euros.", 1},
	} {
		set := &evidence.Set{}
		addPage(set, "a.md", "", c.a)
		addPage(set, "b.md", "", c.b)
		if got := Find(c.question, set, ids(set)); len(got) != c.want {
			t.Errorf("%q of %q and %q: %d contradictions, want %d: %+v", c.question, c.a, c.b, len(got), c.want, got)
		}
	}
}

// TestRecords tells rows from prose.
func TestRecords(t *testing.T) {
	for text, fields := range map[string]int{
		"name: Ada; job: architect.":                       2,
		"name: Ada; note: Born in Harn. Lives in Lowick.":  2,
		"job: architect.":                                  0,
		"There are two: red; blue.":                        0,
		"name: Ada; name: Ben.":                            0,
		"Ada; architect.":                                  0,
		strings.Repeat("x", 99) + ": Ada; job: architect.": 0,
		"It is so. He said: yes; she said: no.":            0,
		": a; : b.":                                        0,
	} {
		n := 0
		if r := newRecord(text); r != nil {
			n = len(r.fields)
		}
		if n != fields {
			t.Errorf("%q has %d fields, want %d", text, n, fields)
		}
	}
}
