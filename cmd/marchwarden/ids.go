package main

import (
	"errors"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// idHelp says in help texts what an ID may be.
const idHelp = `An ID is a trace id as 'marchwarden traces' lists it, the first four or more
characters of one, or "last" for the newest run that has an answer or can be
resumed.`

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
	id, err := run.FindID(rec.Traces, arg)
	if err != nil {
		return nil, nil, marchwarden.TraceID{}, errors.Join(err, rec.Close())
	}
	return c, rec, id, nil
}

// shortID is as much of an id as names it among a few thousand.
func shortID(id marchwarden.TraceID) string { return id.String()[:18] }
