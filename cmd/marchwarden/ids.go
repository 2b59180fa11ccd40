package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// idHelp says in help texts what an ID may be.
const idHelp = `An ID is a trace id as 'marchwarden traces' lists it, the first four or more
characters of one, or "last" for the newest run that has an answer or can be
resumed.`

// minPrefix is how much of an id must be given.
const minPrefix = 4

// openTrace opens the records for a command that is about one run, and finds it. The
// caller closes them.
func (a *app) openTrace(arg string) (*settings.Settings, *network.Records, marchwarden.TraceID, error) {
	c, err := a.loadConfig()
	if err != nil {
		return nil, nil, marchwarden.TraceID{}, err
	}
	rec, err := a.OpenKept(c)
	if err != nil {
		return nil, nil, marchwarden.TraceID{}, err
	}
	id, err := findTrace(rec.Traces, arg)
	if err != nil {
		return nil, nil, marchwarden.TraceID{}, errors.Join(err, rec.Close())
	}
	return c, rec, id, nil
}

// shortID is as much of an id as names it among a few thousand.
func shortID(id marchwarden.TraceID) string { return id.String()[:18] }

// findTrace resolves an id, the beginning of one, or "last".
func findTrace(d *trace.Dir, s string) (marchwarden.TraceID, error) {
	if id, err := marchwarden.ParseTraceID(s); err == nil {
		return id, nil
	}
	const hint = "run 'marchwarden traces' to list the ids there are"
	if s != "last" {
		return oneID(s, hint, fmt.Sprintf("no trace %q in %s", s, d.Path()), d.List)
	}
	ids, err := d.List()
	if err != nil {
		return marchwarden.TraceID{}, err
	}
	for _, id := range ids {
		start, begun := beginning(d, id)
		aside := start != nil && (start.PartOf || start.Investigation != nil && start.Investigation.PlanOnly)
		if begun && !aside {
			return id, nil
		}
	}
	return marchwarden.TraceID{}, &marchwarden.Error{Code: marchwarden.CodeNotFound, Message: fmt.Sprintf("no run in %s has an answer or can be resumed", d.Path()), Hint: hint}
}

// oneID is the id of a list that begins with prefix; an id that is there twice is one.
// The error where there is none says what none and hint say.
func oneID(prefix, hint, none string, list func() ([]marchwarden.TraceID, error)) (marchwarden.TraceID, error) {
	begin := strings.ToLower(prefix)
	switch {
	case strings.Trim(begin, "0123456789abcdef-") != "" || len(begin) > 36:
		_, err := marchwarden.ParseTraceID(prefix)
		return marchwarden.TraceID{}, err
	case len(begin) < minPrefix:
		return marchwarden.TraceID{}, invalid("ID", hint, fmt.Sprintf("%q is too short: give at least %d characters", prefix, minPrefix))
	}
	ids, err := list()
	if err != nil {
		return marchwarden.TraceID{}, err
	}
	var found []marchwarden.TraceID
	seen := map[marchwarden.TraceID]bool{}
	for _, id := range ids {
		if strings.HasPrefix(id.String(), begin) && !seen[id] {
			seen[id], found = true, append(found, id)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return marchwarden.TraceID{}, &marchwarden.Error{Code: marchwarden.CodeNotFound, Message: none, Hint: hint}
	}
	return marchwarden.TraceID{}, invalid("ID", "give more characters", fmt.Sprintf("%q begins %d ids, %s and %s among them", prefix, len(found), found[0], found[1]))
}

// isRihla reports whether a run is part of an investigation, which has a trace of
// its own. One whose first line cannot be read is taken for a run of its own.
func isRihla(d *trace.Dir, id marchwarden.TraceID) bool {
	start, _ := beginning(d, id)
	return start != nil && start.PartOf
}

// beginning is how a run was begun, by its first line alone: there may be thousands of
// traces. The start is nil if the line cannot be read, and begun is false if it was never
// written whole: no run is in it.
func beginning(d *trace.Dir, id marchwarden.TraceID) (start *trace.Start, begun bool) {
	f, err := d.Raw(id)
	if err != nil {
		return nil, marchwarden.CodeOf(err) != marchwarden.CodeNotFound
	}
	defer f.Close()
	first, err := bufio.NewReader(f).ReadBytes('\n')
	if err != nil {
		return nil, !errors.Is(err, io.EOF)
	}
	log, err := trace.Read(bytes.NewReader(first))
	if err != nil {
		return nil, true
	}
	start, _ = log.Start() // nil with its error
	return start, true
}
