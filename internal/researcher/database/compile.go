package database

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

const (
	maxRelations = 30
	maxSlow      = 3 // tables that take too long to look through
	// maxMeaning bounds the words for what the rows are, in characters.
	maxMeaning = 240
	// manyAnswers is how many values are too many for an answer to one question.
	manyAnswers = 12
	manyGroups  = 50  // groups, or rows of a ranking, that an answer holds at most
	maxTried    = 400 // characters of a statement that was tried
	far         = 9   // the rank of a column that the question has nothing to do with
)

// distinctValues are the values of the first column of rows, each once, without those that say nothing.
func distinctValues(rows database.Rows) []string {
	var out []string
	for _, r := range rows.Cells {
		if len(r) > 0 && !r[0].Null && r[0].Text != "" && !slices.Contains(out, r[0].Text) {
			out = append(out, r[0].Text)
		}
	}
	return out
}

// unfit is why a question is not answered: the words that stand for nothing, and the statement that was tried without
// them.
func unfit(db *database.DB, schema database.Schema, words []string, tried *draft) error {
	because := "it names nothing that can be counted, compared or listed"
	switch {
	case len(words) == 0 && tried != nil:
		because = "its statement gives no rows, or too many"
	case len(words) > 0:
		because = "nothing in the tables stands for \"" + strings.Join(words[:min(6, len(words))], `", "`) + `"`
	}
	if tried != nil {
		because += "; tried: " + plaintext.Clip(tried.sql(), maxTried)
	}
	return &marchwarden.Error{Code: marchwarden.CodeUnsupported,
		Message: "the question could not be turned into one statement: " + because + "; " + Scope(db, schema),
		Hint:    "ask for one value, count, total, average or extreme in the words of the tables, or let a model write the statement"}
}

// answer makes a statement of a question and runs it, if every word of it stands for a table, a column, a value, or
// what is done with them. Otherwise, and where the rows answer nothing, it is CodeUnsupported. A question that has
// nothing to do with the tables has neither statement nor error.
func answer(ctx context.Context, db *database.DB, schema database.Schema, text string) (*plan, error) {
	q := newQuestion(text)
	w, err := readWorld(ctx, db, schema, q.words())
	if err != nil || len(w.tables) == 0 {
		return nil, err
	}
	ways := []func(drafting) *draft{drafting.draft, drafting.special}
	if w.all.unnamed {
		slices.Reverse(ways) // in a table alone "the first" is most often that of the table
	}
	var failed error
	for _, way := range ways {
		a := w.ask(q)
		d := way(drafting{a})
		missing := a.missing()
		p, err := a.run(ctx, db, d, missing)
		if p != nil || err != nil {
			return p, err
		}
		if a.met() && (failed == nil || d != nil) {
			failed = unfit(db, schema, missing, d)
		}
	}
	return nil, failed
}

// met reports that the question speaks of something in the tables.
func (a *asking) met() bool {
	return len(a.nouns) > 0 && !a.r.unnamed || len(a.filters) > 0 || a.seen || slices.ContainsFunc(a.cols, func(ms []mention) bool {
		return slices.ContainsFunc(ms, func(m mention) bool { return m.share >= 0.5 })
	})
}

// run runs a draft; nil if there is none, if words are missing from it, or if its rows answer nothing.
func (a *asking) run(ctx context.Context, db *database.DB, d *draft, missing []string) (*plan, error) {
	if d == nil || len(missing) > 0 || a.guessed {
		return nil, nil
	}
	clean, err := database.Check(d.sql(), db.Dialect())
	if err != nil {
		return nil, nil // a name that the wall does not take: there is no statement
	}
	rows, err := db.Query(ctx, clean)
	if code := marchwarden.CodeOf(err); code == marchwarden.CodeInvalid || code == marchwarden.CodeTimeout {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if n := len(distinctValues(rows)); n == 0 || n > cmp.Or(d.most, manyAnswers) || rows.Truncated {
		return nil, nil
	}
	return &plan{statement: clean, rows: rows, meaning: plaintext.Clip(database.Printable(d.meaning), maxMeaning)}, nil
}

// find is the first place of one of several phrases, and where it ends; -1 if none is there.
func (q *question) find(phrases ...string) (from, at int) {
	for i := range q.low {
		for _, p := range phrases {
			if end, ok := q.phraseAt(i, p); ok {
				return i, end
			}
		}
	}
	return -1, -1
}

func (q *question) has(phrases ...string) bool {
	from, _ := q.find(phrases...)
	return from >= 0
}

// useWords takes words for understood, wherever they stand.
func (a *asking) useWords(list ...string) {
	for i, w := range a.q.low {
		if slices.Contains(list, w) {
			a.used[i] = true
		}
	}
}

// What each list holds is said in its file.
var (
	askWords     = lexicon.StemSet("table asking")
	harmless     = lexicon.WordSet("table harmless")
	operators    = lexicon.WordSet("table operators")
	happens      = lexicon.WordSet("table happens")
	auxiliary    = lexicon.WordSet("table auxiliary")
	asksTruth    = lexicon.WordSet("yes or no")
	rowWords     = lexicon.StemSet("table rows")
	tellsNothing = lexicon.StemSet("table plain names")
	called       = lexicon.StemSet("table names")
	ordinals     = lexicon.StemSet("table ordinals")
	ageLike      = lexicon.StemSet("table ages")
	reasonLike   = lexicon.StemSet("table reasons")
	stocked      = lexicon.StemSet("table stock")
	pieces       = lexicon.StemSet("table pieces")
	reduced      = lexicon.StemSet("table reduced")
	frequent     = lexicon.WordSet("table frequent")
	sums         = lexicon.StemSet("table sums")
	said         = lexicon.StemSet("table said")
	idle         = lexicon.WordSet("table idle")
	binding      = lexicon.StemSet("table binding")
	placeLike    = lexicon.StemSet("table places")
	personLike   = lexicon.StemSet("table persons")

	most     = strings.Fields(lexicon.WordList("table most"))
	least    = strings.Fields(lexicon.WordList("table least"))
	more     = strings.Fields(lexicon.WordList("table more"))
	less     = strings.Fields(lexicon.WordList("table less"))
	having   = strings.Fields(lexicon.WordList("table having"))
	distinct = strings.Fields(lexicon.WordList("table distinct"))

	later   = lexicon.WordSet("table after")
	earlier = lexicon.WordSet("table before")
	nearby  = lexicon.WordSet("table between")
)

// grouped are the phrases before what rows are put together by; countWords are numbers from one to ten.
var (
	grouped    = []string{"grouped by", "for each", "in each", "of each", "by each", "for every", "in every", "each", "every", "per", "by"}
	countWords = strings.Fields("one two three four five six seven eight nine ten")
)

// synonyms are pairs of stems that may name the same column; deeds are those of a verb and a table.
var (
	synonyms = sync.OnceValue(func() map[[2]string]bool { return pairs("table synonyms") })
	deeds    = sync.OnceValue(func() map[[2]string]bool { return pairs("table deeds") })
)

func pairs(list string) map[[2]string]bool {
	out := map[[2]string]bool{}
	for group := range strings.SplitSeq(lexicon.WordList(list), ";") {
		words := strings.Fields(group)
		for _, a := range words {
			for _, b := range words {
				out[[2]string{lexicon.Stem(a), lexicon.Stem(b)}] = true
			}
		}
	}
	return out
}

// comparing are the phrases before, or after, a number that compare with it.
var comparing = sync.OnceValue(func() (out []comparison) {
	for _, name := range []string{"before >=", "before <=", "before >", "before <", "after >=", "after <="} {
		side, op, _ := strings.Cut(name, " ")
		for words := range strings.SplitSeq(lexicon.WordList("table "+name), ";") {
			out = append(out, comparison{strings.TrimSpace(words), op, side == "after"})
		}
	}
	return out
})

// comparison is a phrase that compares with a number.
type comparison struct {
	words, op string
	after     bool // it follows the number
}
