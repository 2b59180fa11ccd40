package database_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database/dbtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
)

// Numbers that a statement groups are drawn, out of the stored rows.
func TestGroupedNumbersAreDrawn(t *testing.T) {
	m := llmtest.New("test/m", map[string][]llmtest.Answer{
		"step": {{Calls: []llm.ToolCall{{Name: "web_search", Input: []byte(`{"query":"SELECT city, sum(enrolled) AS enrolled FROM trials GROUP BY city ORDER BY city","reason":"to see"}`)}}},
			{Calls: []llm.ToolCall{{Name: "read_page", Input: []byte(`{"id":"R1","reason":"to see"}`)}}}, {Text: "DONE"}},
		"write": {{Text: `{"claims":[{"text":"Lyon enrolled 455.","passages":["S1.1"],"new_paragraph":false}],"gaps":[],"discoveries":[],"open_questions":[]}`}},
		"judge": {{Text: `{"verdicts":[{"claim":1,"verdict":"supported"}]}`}},
	})
	res := newModelHome(t, dbtest.File(t, "clinic.db", clinic...), m).ask(t, "How many were enrolled in the trials of each city?")
	want := marchwarden.Block{Type: marchwarden.Chart, Kind: "bar", Citation: 1, Series: []marchwarden.Series{{Name: "enrolled", Labels: []string{"Graz", "Lyon", "Oslo"}, Values: []float64{610, 455, 88}}}}
	if n := len(res.Blocks); n < 2 || !cmp.Equal(res.Blocks[n-1], want) || !strings.Contains(res.Answer, "|  | enrolled |\n|---|---|\n| Graz [1] | 610 |\n| Lyon [1] | 455 |") {
		t.Errorf("%+v\n%s\n%v", res.Blocks, res.Answer, res.Gaps)
	}
}
