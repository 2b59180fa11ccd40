package extractive

import (
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

// How the text of rows says what they mean: the database researcher writes it below the rows of a statement that it made
// of the question.
const (
	ofDatabase  = "database"
	meaningMark = "\n# Meaning: "
)

// surelyComputed is how well rows match the question that their statement was made of.
const surelyComputed = 0.9

// computed is the answer where all that was read are the rows of one statement that was made of the question: every word
// of it stands for something there, and a reader of prose has nothing to add.
func computed(st *reason.State) (reason.Draft, bool) {
	sources := st.Evidence.Sources()
	if st.Evidence.Earlier || len(sources) != 1 || sources[0].Page.Source != ofDatabase {
		return reason.Draft{}, false
	}
	src := sources[0]
	_, meaning, ok := strings.Cut(src.Text, meaningMark)
	if !ok {
		return reason.Draft{}, false
	}
	meaning, _, _ = strings.Cut(meaning, "\n")
	for i := range src.Passages {
		p := &src.Passages[i]
		if p.IsHeading {
			continue
		}
		claims := pay(st, []reason.Claim{{Text: p.Text, Passages: []evidence.ID{p.ID}, Paragraph: true, Support: marchwarden.Supported, Spans: []marchwarden.Span{p.Span}}})
		return reason.Draft{Claims: claims, Short: valueOf(p, meaning), Match: surelyComputed}, len(claims) > 0
	}
	return reason.Draft{}, false
}

// valueOf is the one value that a row gives: all of it behind its meaning, or its first cell. Of several rows there is none.
func valueOf(p *evidence.Passage, meaning string) *reason.Short {
	from := 0
	if strings.HasPrefix(p.Text, meaning+": ") {
		from = len(meaning) + 2
	}
	rest := strings.TrimSuffix(p.Text[from:], ".")
	if strings.Contains(rest, " | ") || strings.Contains(rest, "\n") {
		return nil
	}
	if _, value, named := strings.Cut(rest, ": "); named {
		from += len(rest) - len(value)
		rest, _, _ = strings.Cut(value, "; ")
	}
	span := marchwarden.Span{Start: p.Span.Start + from, End: p.Span.Start + from + len(rest)}
	return &reason.Short{Passage: p.ID, Span: span, Kind: marchwarden.ShortValue}
}
