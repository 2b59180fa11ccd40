package pi_test

import (
	"context"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
)

// An investigation draws the rows that a database's report rests on itself; what a report says of them does not count.
func TestRowsOfAReportAreDrawn(t *testing.T) {
	const rows = "# SELECT … — trials.db\n\ncity: Graz; trials: 3.\ncity: Lyon; trials: 5.\ncity: Oslo; trials: 4.\n\n# Statement: SELECT …\n# Asked of: trials.db\n"
	s := newStage()
	s.add(dispatch.Member{Name: "database", Scope: "the database trials.db"}, func(context.Context, int, marchwarden.Request) (*marchwarden.Result, error) {
		res := s.report(map[string]string{"db:trials.db?query=1": rows})
		res.Citations[0].Source, res.Claims[0].Text = "database", "city: Lyon; trials: 5."
		res.Answer = res.Claims[0].Text + " [1]"
		res.Blocks = []marchwarden.Block{{Type: marchwarden.Paragraph, Claims: res.Claims},
			{Type: marchwarden.Chart, Kind: "bar", Citation: 1, Series: []marchwarden.Series{{Name: "trials", Labels: []string{"Nova"}, Values: []float64{900}}}}}
		return res, nil
	})
	res := newOffice(t).ask(t, pi.Config{Dispatcher: s, Minds: minds()}, marchwarden.Request{Question: "How many trials does each city have?"})
	if n := len(res.Blocks); n < 2 || res.Blocks[n-1].Type != marchwarden.Chart || len(res.Blocks[n-1].Series[0].Values) != 3 || res.Blocks[n-1].Series[0].Values[1] != 5 {
		t.Errorf("%+v\n%s\n%v", res.Blocks, res.Answer, res.Gaps)
	}
}
