package scale

import (
	"cmp"
	"slices"
)

// Table is a plan: what a load comes to, and what gives way as it grows.
type Table struct {
	Load   Load
	Rows   []Row
	Limits []Limit // the first to give way first
	Growth []Step
	Costs  []Cost
}

// Cost is what something costs, in dollars.
type Cost struct {
	What string
	Day  float64
}

// Row is one thing that a load comes to.
type Row struct {
	What string
	Mean float64
	Peak float64 // none if it is negative
	Unit string  // as amount reads it
}

// Limit is one thing that there is only so much of.
type Limit struct {
	What     string
	Uses     float64 // at the load
	Has      float64
	Unit     string
	Multiple float64 // of the load at which it is used up
	Then     string  // what to do about it
}

// Step is the cluster at a multiple of the load and of the workers, with nothing added to
// the hubs.
type Step struct {
	Multiple   float64
	Appends    float64 // a second, at the peak
	AppendWait float64 // seconds, 99 of 100
	QueueWait  float64 // seconds, 99 of 100
	InFlight   float64
	Memory     float64 // of a hub
	Disk       float64 // of a hub
	GivesWay   []string
}

// Plan works a load out. A load that Check refuses gives an empty table.
func Plan(l Load) Table {
	t := Table{Load: l}
	if l.Check() != nil {
		return t
	}
	run := Simulate(l)
	t.Rows = rows(l, run)
	t.Limits = limits(l)
	for _, m := range []float64{0.1, 0.5, 1, 2, 4, 8} {
		t.Growth = append(t.Growth, step(l, m))
	}
	t.Costs = costs(l)
	return t
}

func costs(l Load) []Cost {
	count, bytes := l.blobs()
	all := []Cost{
		{"hubs", float64(l.Hubs) * hubPrice.Value},
		{"workers", float64(l.Hosts) * workerPrice.Value},
		{"models", l.Rihlas * tokensOfRihla.Value / 1e6 * tokensPrice.Value},
	}
	if l.Evidence == InS3 {
		all = append(all,
			Cost{"evidence: requests", l.Rihlas * count / 1e6 * (putPrice.Value + getPrice.Value)}, // looked for, and then put
			Cost{"evidence: 30 days of it kept", l.Rihlas * bytes * 30 / 1e9 * keepPrice.Value / 30},
		)
	}
	return all
}

// none is the peak of what has none.
const none = -1

func rows(l Load, run Run) []Row {
	mean := l.perSecond()
	flush := func(appends float64) float64 { return min(appends*flushes.Value, flushesAtMost.Value) }
	appends, size := l.appends(), l.stored()
	flight := mean * l.Seconds
	beat := beats / lease
	bytes, subjects := l.kept()
	count, evidence := l.blobs()
	// A message for each append and its answer, a heartbeat and its answer, four to take
	// and to acknowledge a task, and the copy of each entry that those who watch get.
	messages := func(appends, flight, tasks float64) float64 {
		return 2*appends + 2*beat*flight + 4*tasks + appends*l.entries()/l.appends()
	}
	return []Row{
		{"rihlas", mean, mean * l.Peak, "/s"},
		{"rihlas in flight", flight, run.InFlight, ""},
		{"investigations in flight", flight / l.PerTask * 2, flight / l.PerTask * 2 * l.Peak, ""},
		{"appends to the hubs", mean * appends, max(run.AppendsPeak, mean*appends*l.Peak), "/s"},
		{"messages", messages(mean*appends, flight, mean*l.tasks()), messages(mean*appends*l.Peak, run.InFlight, mean*l.tasks()*l.Peak), "/s"},
		{"bytes appended", mean * size, mean * size * l.Peak, "B/s"},
		{"flushes of each hub", flush(mean * appends), flush(mean * appends * l.Peak), "/s"},
		{"bytes to the disk of each hub", mean * size * writtenTwice.Value, mean * size * writtenTwice.Value * l.Peak, "B/s"},
		{"between the hubs, from a leader of all", mean * size * float64(l.Hubs-1), mean * size * float64(l.Hubs-1) * l.Peak, "B/s"},
		{"subjects kept", subjects, none, ""},
		{"memory of each hub", hubMemory.Value + subjects*subjectMemory.Value, none, "B"},
		{"streams of each hub", bytes, none, "B"},
		{"evidence, a day", l.Rihlas * evidence, none, "B"},
		{"documents, a day", l.Rihlas * count, none, ""},
		{"wait for a slot, half of all and 99 of 100", run.Waits.P50, run.Waits.P99, "s"},
		{"wait of an append for those before it, half and 99 of 100", run.AppendWaits.P50, run.AppendWaits.P99, "s"},
		{"rihlas taken over from hosts that died, a day", l.Rihlas * l.Lost / day / float64(l.Hosts) * l.Seconds, none, ""},
		{"memory of all workers", float64(l.Hosts) * workerMemory.Value, none, "B"},
	}
}

// busy is how much of a capacity is used before waiting grows without need.
const busy = 0.7

// The limits that the simulation finds as well, as waits.
const (
	workerSlots = "slots of the workers"
	logAppends  = "appends to the log"
)

func limits(l Load) []Limit {
	peak := l.perSecond() * l.Peak
	bytes, subjects := l.kept()
	logPeak := peak * (l.appends() - l.evidenceAppends())
	all := []Limit{
		{What: workerSlots, Uses: peak * l.Seconds, Has: float64(l.Hosts * l.Slots), Then: "add hosts: they hold nothing"},
		{What: "slots for investigations", Uses: peak / l.PerTask * 2 * l.Seconds, Has: float64(l.Hosts * l.PISlots), Then: "raise --pi-slots, or add hosts"},
		{What: logAppends, Uses: logPeak, Has: appendsAtMost.Value * busy * float64(l.Shards), Unit: "/s", Then: "cut the log into streams by investigation, each with a leader of its own"},
		{What: "memory of a hub", Uses: hubMemory.Value + subjects*subjectMemory.Value, Has: l.HubMemory * busy, Unit: "B", Then: "keep ends and tasks for less long: the evidence has them sealed"},
		{What: "disk of a hub", Uses: bytes, Has: l.HubDisk * 0.9, Unit: "B", Then: "keep the log for less long; keep evidence elsewhere"},
		{What: "network of a hub", Uses: peak * l.stored() * float64(l.Hubs+1), Has: l.HubNetwork * busy, Unit: "B/s", Then: "spread the leaders; gateways for each region"},
		{What: "changes of one shared limit", Uses: claims.Value * float64(l.Hosts), Has: claimsAtMost.Value, Unit: "/s", Then: "larger shares of a limit at once"},
	}
	if l.Evidence == InHubs {
		count, _ := l.blobs()
		all = append(all, Limit{What: "appends of evidence", Uses: peak * count, Has: appendsAtMost.Value * busy, Unit: "/s", Then: "keep evidence elsewhere: s3:// or dir:"})
	}
	for i := range all {
		all[i].Multiple = all[i].Has / all[i].Uses
	}
	slices.SortStableFunc(all, func(a, b Limit) int { return cmp.Compare(a.Multiple, b.Multiple) })
	return all
}

// step is the load at a multiple. What gives way there are the limits that are used up, the
// most exceeded first, and what the simulation waits for besides: a minute for a slot, or a
// second for an append.
func step(l Load, m float64) Step {
	l = l.Times(m)
	l.Hosts = max(1, int(float64(l.Hosts)*m))
	run := Simulate(l)
	bytes, subjects := l.kept()
	s := Step{
		Multiple: m, Appends: run.AppendsPeak, AppendWait: run.AppendWaits.P99, QueueWait: run.Waits.P99, InFlight: run.InFlight,
		Memory: hubMemory.Value + subjects*subjectMemory.Value, Disk: bytes,
	}
	gives := func(what string, does bool) {
		if does && !slices.Contains(s.GivesWay, what) {
			s.GivesWay = append(s.GivesWay, what)
		}
	}
	for _, limit := range limits(l) {
		gives(limit.What, limit.Multiple < 1)
	}
	gives(workerSlots, s.QueueWait > 60)
	gives(logAppends, s.AppendWait > 1)
	return s
}
