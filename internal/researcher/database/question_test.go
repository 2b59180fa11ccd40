package database

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database/dbtest"
)

func medals(t *testing.T) (*database.DB, database.Schema) {
	t.Helper()
	db, err := database.Open(t.Context(), dbtest.File(t, "medals.db",
		`CREATE TABLE medals (id INTEGER PRIMARY KEY, nation TEXT, "gold medals" INTEGER, silver INTEGER, "first year" INTEGER, "prize money" TEXT, city TEXT)`,
		`INSERT INTO medals VALUES (1, 'Norway', 12, 5, 1924, '$1,200', 'Oslo'), (2, 'Côte d''Ivoire', 1, 0, 1988, '$90', 'Abidjan'), (3, 'New Zealand', 3, 3, 1952, '$15,000', 'Auckland'),
			(4, 'Sweden', 3, 9, 1924, '$800', 'Stockholm'), (5, 'Total', 19, 17, NULL, NULL, NULL)`), database.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	schema, err := db.Schema(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return db, schema
}

func TestAnswers(t *testing.T) {
	db, schema := medals(t)
	for q, want := range map[string]string{
		"How many gold medals did Norway win?":                         "12",
		"Which nation has the most gold medals?":                       "Norway",
		"Which nation has the least silver?":                           "Côte d'Ivoire",
		"Which nation has the highest prize money?":                    "New Zealand",
		"What is the total silver?":                                    "17",
		"How many nations have more than 2 gold medals?":               "3",
		"Which nation has a first year after 1950 and 3 silver?":       "New Zealand",
		"What is the city of cote d'ivoire?":                           "Abidjan",
		"Which nation is listed after Norway?":                         "Côte d'Ivoire",
		"Which nation comes before Sweden?":                            "New Zealand",
		"Which nation is at the top of the table?":                     "Norway",
		"Which nation has more silver, Norway or Sweden?":              "Sweden",
		"How many more gold medals does Norway have than New Zealand?": "9",
		"What is the average silver?":                                  "4.25",
		"Which nations have a first year in the 1920s?":                "Norway|Sweden",
	} {
		st, err := answer(t.Context(), db, schema, q)
		if st == nil {
			t.Errorf("%q: no statement, %v", q, err)
			continue
		}
		if got := strings.Join(distinctValues(st.rows), "|"); got != want || err != nil {
			t.Errorf("%q gave %s (%v), want %s\n%s\n%s", q, got, err, want, st.meaning, st.statement)
		}
	}
}

// What is not understood is said, or not answered at all.
func TestDoubts(t *testing.T) {
	db, schema := medals(t)
	for _, q := range []string{
		"Is Norway better than Sweden?", "How many gold medals did Norway win in curling at night?", "Which nation won gold medals in three consecutive years?",
		"Which nation has the most bronze?", "How many years passed between the gold medals of Norway?",
	} {
		if st, err := answer(t.Context(), db, schema, q); marchwarden.CodeOf(err) != marchwarden.CodeUnsupported {
			t.Errorf("%q: %+v, %v", q, st, err)
		}
	}
	if st, err := answer(t.Context(), db, schema, "Why is the sky blue?"); st != nil || err != nil {
		t.Errorf("a question about something else: %+v, %v", st, err)
	}
}

// Any words give a statement that runs, the same one each time, or none.
func TestAnyWords(t *testing.T) {
	db, schema := medals(t)
	word := rapid.SampledFrom(strings.Fields("which what who how many most least first last after before than more or and not between difference average total number of the nation gold medals silver Norway Sweden New Zealand Total 3 12 1924 1920s ' \" ; -- city prize money % _ was is at top table other same"))
	rapid.Check(t, func(rt *rapid.T) {
		q := strings.Join(rapid.SliceOfN(word, 0, 12).Draw(rt, "words"), " ")
		st, err := answer(t.Context(), db, schema, q)
		if code := marchwarden.CodeOf(err); code != "" && code != marchwarden.CodeUnsupported {
			rt.Fatalf("%q: %v", q, err)
		}
		again, _ := answer(t.Context(), db, schema, q)
		if d := cmp.Diff(st, again, cmp.AllowUnexported(plan{})); d != "" {
			rt.Fatalf("%q differs the second time: %s", q, d)
		}
		if st == nil {
			return
		}
		if clean, err := database.Check(st.statement, database.SQLite); err != nil || clean != st.statement {
			rt.Fatalf("%q gave %q: %v", q, st.statement, err)
		}
	})
}
