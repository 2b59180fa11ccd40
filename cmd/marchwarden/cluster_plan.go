package main

import (
	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scale"
)

const planHelp = `Work out what a load comes to: messages, bytes, memory of hubs, growth of the
evidence, cost, and what gives way first, from measured figures and a
simulation of the busiest half hour. Nothing is asked of anybody. docs/scale.md
explains it.`

func newClusterPlan(a *app) *cobra.Command {
	l := scale.Target()
	var asJSON bool
	cmd := &cobra.Command{
		Use: "plan", Short: "work out how many hosts a load needs", Long: planHelp, Args: noArgs,
		Example: "  marchwarden cluster plan\n  marchwarden cluster plan --rihlas 50000 --hosts 10 --hubs 1",
		RunE:    func(*cobra.Command, []string) error { return a.runClusterPlan(l, asJSON) },
	}
	f := cmd.Flags()
	f.Float64Var(&l.Rihlas, "rihlas", l.Rihlas, "`N` rihlas a day")
	f.Float64Var(&l.Peak, "peak", l.Peak, "the busiest hour has `N` times the mean")
	f.Float64Var(&l.PerTask, "per-investigation", l.PerTask, "an investigation sends `N` rihlas")
	f.Float64Var(&l.Calls, "calls", l.Calls, "a rihla makes `N` calls to models and search engines")
	f.Float64Var(&l.Pages, "pages", l.Pages, "and reads `N` pages")
	f.Float64Var(&l.Seconds, "seconds", l.Seconds, "and takes `N` seconds")
	f.IntVar(&l.Hosts, "hosts", l.Hosts, "`N` hosts work")
	f.IntVar(&l.Slots, "slots", l.Slots, "with `N` slots each")
	f.IntVar(&l.Hubs, "hubs", l.Hubs, "`N` hubs: 1 or 3")
	f.StringVar(&l.Evidence, "evidence", l.Evidence, "`WHERE` documents are kept: "+scale.InHubs+", "+scale.InDir+" or "+scale.InS3)
	f.BoolVar(&asJSON, "json", false, "print JSON")
	complete(cmd, "evidence", scale.InHubs, scale.InDir, scale.InS3)
	return cmd
}

func (a *app) runClusterPlan(l scale.Load, asJSON bool) error {
	if err := l.Check(); err != nil {
		return invalid("", "run 'marchwarden cluster plan --help' for the flags there are", err.Error())
	}
	t := scale.Plan(l)
	if asJSON {
		return printJSON(a.stdout, t)
	}
	return marchwarden.Wrap(t.WriteText(a.stdout), marchwarden.CodeUnavailable, "print the plan")
}
