package main

import (
	"fmt"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scale"
)

const planHelp = `Work out what a load comes to: messages, bytes, memory of hubs, growth of the
evidence, cost, and what gives way first, from measured figures and a
simulation of the busiest half hour. Without flags it is a million rihlas a
day on hubs that keep what they keep if nobody says otherwise. Nothing is asked
of anybody. docs/scale.md explains it.`

const planExamples = `  marchwarden cluster plan
  marchwarden cluster plan --rihlas 50000 --hosts 10 --hubs 1
  marchwarden cluster plan --evidence s3 --keep-log 2d --keep-task 2d --keep-done 7d`

type planOptions struct {
	load                       scale.Load
	keepLog, keepTask, keepEnd string
	hubMemory, hubDisk         string
	json                       bool
}

func newClusterPlan(a *app) *cobra.Command {
	o := planOptions{load: scale.Target().AsShipped()}
	cmd := &cobra.Command{
		Use: "plan", Short: "work out how many hosts a load needs", Long: planHelp, Example: planExamples, Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return a.runClusterPlan(o) },
	}
	f, l := cmd.Flags(), &o.load
	f.Float64Var(&l.Rihlas, "rihlas", l.Rihlas, "`N` rihlas a day")
	f.Float64Var(&l.Peak, "peak", l.Peak, "the busiest hour has `N` times the mean")
	f.Float64Var(&l.PerTask, "per-investigation", l.PerTask, "an investigation sends `N` rihlas")
	f.Float64Var(&l.Calls, "calls", l.Calls, "a rihla makes `N` calls to models and search engines")
	f.Float64Var(&l.Pages, "pages", l.Pages, "and reads `N` pages")
	f.Float64Var(&l.Seconds, "seconds", l.Seconds, "and takes `N` seconds")
	f.IntVar(&l.Hosts, "hosts", l.Hosts, "`N` hosts work")
	f.IntVar(&l.Slots, "slots", l.Slots, "with `N` slots each")
	f.IntVar(&l.PISlots, "pi-slots", l.PISlots, "and `N` for investigations")
	f.IntVar(&l.Hubs, "hubs", l.Hubs, "`N` hubs: 1 or 3")
	f.StringVar(&o.hubMemory, "hub-memory", fmt.Sprintf("%gGB", l.HubMemory/1e9), "each with `SIZE` of memory for the server")
	f.StringVar(&o.hubDisk, "hub-disk", fmt.Sprintf("%gGB", l.HubDisk/1e9), "and `SIZE` of disk")
	f.StringVar(&o.keepLog, "keep-log", fmt.Sprintf("%gd", l.LogDays), "hubs keep the records of tasks for this `TIME`")
	f.StringVar(&o.keepTask, "keep-task", fmt.Sprintf("%gd", l.TaskDays), "what was asked for this `TIME`")
	f.StringVar(&o.keepEnd, "keep-done", fmt.Sprintf("%gd", l.DoneDays), "and how tasks ended for this `TIME`")
	f.StringVar(&l.Evidence, "evidence", l.Evidence, "`WHERE` documents are kept: "+scale.InHubs+", "+scale.InDir+" or "+scale.InS3)
	f.IntVar(&l.Shards, "shards", l.Shards, "the log is cut into `N` streams; hubs of today have one")
	f.BoolVar(&o.json, "json", false, "print JSON")
	complete(cmd, "evidence", scale.InHubs, scale.InDir, scale.InS3)
	return cmd
}

func (a *app) runClusterPlan(o planOptions) error {
	l, err := o.read()
	if err != nil {
		return err
	}
	if err := l.Check(); err != nil {
		return invalid("", "run 'marchwarden cluster plan --help' for the flags there are", err.Error())
	}
	t := scale.Plan(l)
	if o.json {
		return printJSON(a.forPrograms(), t)
	}
	return marchwarden.Wrap(t.WriteText(a.stdout), marchwarden.CodeUnavailable, "print the plan")
}

// read is the load with what is written as times and sizes.
func (o planOptions) read() (scale.Load, error) {
	l := o.load
	for _, k := range []struct {
		flag, text string
		days       *float64
	}{{"--keep-log", o.keepLog, &l.LogDays}, {"--keep-task", o.keepTask, &l.TaskDays}, {"--keep-done", o.keepEnd, &l.DoneDays}} {
		term, err := parseTerm(k.text)
		if err != nil {
			return l, invalid(k.flag, "", fmt.Sprintf("must be a time such as 7d or 36h, not %q", clip(k.text, 40)))
		}
		*k.days = term.Hours() / 24
	}
	for _, k := range []struct {
		flag, text string
		bytes      *float64
	}{{"--hub-memory", o.hubMemory, &l.HubMemory}, {"--hub-disk", o.hubDisk, &l.HubDisk}} {
		size, err := parseSize(k.text)
		if err != nil {
			return l, invalid(k.flag, "", fmt.Sprintf("must be a size such as 200GB, not %q", clip(k.text, 40)))
		}
		*k.bytes = float64(size)
	}
	return l, nil
}
