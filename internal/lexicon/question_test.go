package lexicon

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKindOfQuestion(t *testing.T) {
	for _, c := range []struct {
		question string
		want     QuestionKind
	}{
		{"Who wrote the Lighthill report?", "who"},
		{"In what year was Deep Blue built?", AskWhat},
		{"Which crops tolerate salt?", "which"},
		{"What did Turing ask in 1950?", AskWhat},
		{"What is the capital of France?", AskWhat},
		{"How many regions does France have?", "how"},
		{"Is the soil of Utah alkaline?", AskYesNo},
		{"What are ideal crops for a garden in Utah?", AskList},
		{"Comprehensive history of AI", AskWhat},
		{"Compare BERT and GPT", AskCompare},
		{"What is chlorosis?", AskDefine},
		{"What is an AI winter?", AskDefine},
		{"What is chlorosis and how is it treated?", AskDefine},
		{"What is the difference between BERT and GPT?", AskCompare},
	} {
		if got := ReadQuestion(c.question, "").Kind; got != c.want {
			t.Errorf("%q is read as %q, want %q", c.question, got, c.want)
		}
	}
}

func TestPartsOfQuestion(t *testing.T) {
	for _, c := range []struct {
		question string
		want     []string // the queries of the parts
	}{
		{"What is the capital of France?", []string{"capital France"}},
		{"Who founded Rome and when did Carthage fall?", []string{"founded Rome", "Carthage fall"}},
		{"What does the AI Act forbid, and when does it apply?", []string{"AI Act forbid", "AI Act apply"}},
		{"Who built the dam? Why was it built?", []string{"built dam", "built dam"}},
		{"What is iron chlorosis and how do I treat it in spring?", []string{"iron chlorosis", "iron chlorosis treat spring"}},
		{"What are crops for Utah? number 4", []string{"crops Utah"}},
		{"Compare BERT and GPT", []string{"BERT", "GPT"}},
		{"What is the difference between drip irrigation and sprinklers?", []string{"drip irrigation", "sprinklers"}},
	} {
		q := ReadQuestion(c.question, "")
		var got []string
		for _, p := range q.Parts {
			got = append(got, p.Query)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", c.question, d)
		}
	}
}

func TestAttributeOfQuestion(t *testing.T) {
	for question, want := range map[string]string{
		"What is the population of Brazil?":   "popul",
		"Who is the CEO of Google?":           "ceo",
		"What is the boiling point of water?": "point",
		"What was the Battle of Hastings?":    "", // a name
		"What is the name of the river?":      "", // only asks
		"Who wrote the history of Rome?":      "",
		"When was the king of Spain born?":    "",
	} {
		if got := ReadQuestion(question, "").Asked; got != want {
			t.Errorf("%q asks for %q, want %q", question, got, want)
		}
	}
}

func TestNamesOfQuestion(t *testing.T) {
	for _, c := range []struct {
		question string
		want     []string
	}{
		{"Who moved the court to Warsaw?", []string{"Warsaw"}},
		{"Did Alan Turing meet John McCarthy?", []string{"Alan Turing", "John McCarthy"}},
		{"Tomatoes in gardens", nil},
		{"WHO WON THE WORLD CUP", nil},
	} {
		if d := cmp.Diff(c.want, ReadQuestion(c.question, "").Names); d != "" {
			t.Errorf("%q (-want +got):\n%s", c.question, d)
		}
	}
}

func TestMisspelt(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"beriod", "beroid", true}, {"boleslaw", "bolesław", true}, {"kasparow", "kasparov", true}, {"kilimanjar", "kilimanjaro", true},
		{"utah", "utan", false}, {"ogdens", "ogdensx", true}, {"samarkand", "samarra", false}, {"texas", "mexas", false}, {"paris", "parks", false},
	} {
		if got := misspelt(c.a, c.b); got != c.want {
			t.Errorf("misspelt(%q, %q) = %v", c.a, c.b, got)
		}
	}
}

func TestSameFamily(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"conquer", "conquest", true}, {"invent", "inventor", true}, {"norman", "normandi", true},
		{"plant", "planet", false}, {"north", "northern", true}, {"cat", "cattl", false}, {"contract", "contrast", false},
	} {
		if got := sameFamily(c.a, c.b); got != c.want {
			t.Errorf("sameFamily(%q, %q) = %v", c.a, c.b, got)
		}
	}
}
