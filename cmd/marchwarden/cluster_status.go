package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/limit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// stuckError is the error of a cluster in which something does not move.
func stuckError(s cluster.Status) error {
	trouble := func(hint, format string, args ...any) error {
		return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: fmt.Sprintf(format, args...), Hint: hint}
	}
	const startOne = "start one: marchwarden worker"
	if s.Unserved > 0 {
		return trouble(startOne, "no worker was ever there for %s", term.Plural(s.Unserved, "waiting task"))
	}
	for _, q := range s.Queues {
		if n := deserted(q); n > 0 {
			return trouble(startOne, "no worker is there for %s of the queue %s", term.Plural(n, "waiting task"), term.CleanLine(q.Name))
		}
	}
	if quiet := quietFor(s); quiet > longQuiet*s.Lease {
		return trouble("a call to a model may take that long; if it stays, look at the logs of the workers", "nothing was written for %s with %s under way", term.Duration(quiet), term.Plural(s.Tasks, "task"))
	}
	return nil
}

// longQuiet is after how many leases without a word a cluster with open tasks is taken to
// stand still.
const longQuiet = 8

// quietFor is how long nothing was written although there is something to do.
func quietFor(s cluster.Status) time.Duration {
	if s.Tasks == 0 || s.Written.IsZero() {
		return 0
	}
	return s.At.Sub(s.Written).Round(time.Second)
}

// deserted is how many tasks of a queue wait for a worker that is not there. What was in
// flight when the last one went waits, too: it is handed to the next one that comes.
func deserted(q cluster.Queue) (n int) {
	for _, b := range q.Bands {
		if q.Workers == 0 {
			n += b.Waiting + b.InFlight
		}
	}
	return n
}

// writeStatus writes a cluster as one screen.
func writeStatus(w io.Writer, st term.Style, s cluster.Status) error {
	var out strings.Builder
	var rows [][]string
	table := func(none string, head ...string) {
		if out.Len() > 0 {
			out.WriteString("\n")
		}
		if len(rows) == 0 {
			out.WriteString(none + "\n")
		} else {
			_ = st.Table(&out, head, rows) // a builder takes everything
		}
		rows = nil
	}
	for _, h := range s.Hubs {
		state := "in step"
		switch {
		case h.Offline:
			state = "offline"
		case h.Behind > 0:
			state = fmt.Sprintf("behind in %s (%d)", term.Plural(h.Behind, "stream"), h.Lag)
		}
		rows = append(rows, []string{term.CleanLine(h.Name), state, fmt.Sprint(h.Leads), fmt.Sprint(h.Keeps)})
	}
	table("no hub is there", "hub", "state", "leads", "keeps")
	for _, w := range s.Workers {
		rows = append(rows, workerRow(w, s, s.At.Sub(w.Heard) > 2*s.Lease/3)) // it speaks every third of a lease
	}
	for _, w := range s.Silent {
		rows = append(rows, workerRow(w, s, true))
	}
	table("no worker is there; marchwarden worker starts one", "worker", "state", "busy", "for", "version", "researchers")
	for _, q := range s.Queues {
		row := []string{term.CleanLine(q.Name)}
		flight, again := 0, 0
		for _, b := range q.Bands {
			row = append(row, fmt.Sprint(b.Waiting))
			flight, again = flight+b.InFlight, again+b.Redelivered
		}
		rows = append(rows, append(row, fmt.Sprint(flight), fmt.Sprint(again), fmt.Sprintf("%d of %d", q.Busy, q.Slots), fmt.Sprint(q.Workers)))
	}
	table("no queue yet", "queue", "urgent", "normal", "low", "in flight", "again", "busy", "workers")
	writeRest(&out, s)
	_, err := io.WriteString(w, out.String())
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print the outcome")
}

func workerRow(w cluster.Presence, s cluster.Status, silent bool) []string {
	state := "working"
	switch {
	case silent:
		state = "silent for " + term.Duration(s.At.Sub(w.Heard).Round(time.Second))
	case w.Draining:
		state = "draining"
	}
	var names []string
	busy, slots := 0, 0
	for _, m := range w.Members {
		names = append(names, m.Name)
	}
	for _, l := range w.Queues {
		busy, slots = busy+l.Busy, slots+l.Slots
	}
	if _, ok := w.Queues[settings.PI]; ok {
		names = append(names, settings.PI)
	}
	return []string{term.CleanLine(w.Name), state, fmt.Sprintf("%d of %d", busy, slots), term.Duration(s.At.Sub(w.Since).Round(time.Second)), term.CleanLine(w.Version), term.CleanLine(strings.Join(names, ", "))}
}

// writeRest writes what stands below the tables.
func writeRest(out *strings.Builder, s cluster.Status) {
	steward, flawed := "no hub keeps it in order at the moment", ""
	if s.Steward != nil {
		steward = "kept in order by " + term.CleanLine(s.Steward.Name)
		if s.Steward.Flawed > 0 {
			flawed = fmt.Sprintf("; %s failed or came with a warning", term.Plural(int(s.Steward.Flawed), "answer"))
		}
	}
	rate := fmt.Sprintf("%.1f ended a minute", s.PerMinute)
	if quiet := quietFor(s); quiet > 2*s.Lease {
		rate += ", nothing was written for " + term.Duration(quiet)
	}
	bytes := uint64(0)
	for _, stream := range s.Streams {
		bytes += stream.Bytes
	}
	fmt.Fprintf(out, "\n%s under way, %s; %s; %s kept; %s\n",
		term.Plural(s.Investigations, "investigation"), term.Plural(s.Tasks, "task"), rate+flawed, term.Bytes(int64(bytes)), steward)
	for _, l := range s.Limits {
		fmt.Fprintf(out, "limit %s: %s\n", term.CleanLine(l.Key), limitWords(l, s.At))
	}
}

func limitWords(l limit.Use, now time.Time) string {
	amount := func(n float64) string {
		parts := strconv.FormatFloat(math.Round(n*1e4)/1e4, 'f', -1, 64)
		switch {
		case strings.HasSuffix(l.Key, limit.Key("", limit.Money)):
			return "$" + parts
		case n == math.Trunc(n):
			return term.Count(int(n))
		}
		return parts
	}
	words := fmt.Sprintf("%s of %s used, %s", amount(l.Used), amount(l.Of), l.Rate)
	if l.Slow.After(now) {
		words += "; no calls for another " + term.Duration(l.Slow.Sub(now).Round(time.Second))
	}
	return words
}
