package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

const watchHelp = `Come back to a research that a cluster works on: what was done so far is told,
then what happens, and at its end the record comes home and the result is
shown, as 'marchwarden ask' would have. Ctrl-C goes again, and the research
goes on.

An ID is the whole id of a task, the first four or more characters of one that
was handed in from here, or "last" for the newest of those.

EXIT STATUS
  0    answered, gaps and plain refusals included
  1    failed or canceled
  2    wrong usage or bad input
  130  interrupted; the research goes on`

func newWatchCommand(a *app) *cobra.Command {
	var o askOptions
	cmd := &cobra.Command{
		Use: "watch [flags] ID", Short: "come back to a research in a cluster", Long: watchHelp,
		Example: "  marchwarden watch last\n  marchwarden watch --engine nats://hub1:4222 0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10",
		Args:    argCount(1, 1, "one id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.jsonEvents {
				a.reader = program
			}
			if err := notBlank(cmd); err != nil {
				return err
			}
			return a.runWatch(cmd.Context(), o, args[0])
		},
	}
	engineFlag(cmd.Flags(), &o.engine)
	o.showFlags(cmd.Flags())
	return cmd
}

func (a *app) runWatch(ctx context.Context, o askOptions, arg string) error {
	if err := checkOut(o.out); err != nil {
		return err
	}
	c, at, id, err := a.findSent(o.engine, arg)
	if err != nil {
		return err
	}
	e, err := a.openCluster(ctx, c, at, a.logger(c))
	if err != nil {
		return err
	}
	defer e.Close()
	state, err := e.Look(ctx, id)
	if err != nil {
		return err
	}
	o.desk.planOnly = state.Task.Wishes.PlanOnly
	return a.follow(ctx, c, o, e, id)
}

const cancelHelp = `Say that nobody waits for a research any more. What is under way ends as at a
deadline, with what there is; what waits is not begun. 'marchwarden watch ID'
shows what came of it. Canceling what has ended changes nothing.

An ID is as for 'marchwarden watch'.`

func newCancel(a *app) *cobra.Command {
	var engine string
	cmd := &cobra.Command{
		Use: "cancel [flags] ID", Short: "end a research in a cluster", Long: cancelHelp,
		Example: "  marchwarden cancel last\n  marchwarden cancel --engine nats://hub1:4222 0198c0de",
		Args:    argCount(1, 1, "one id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := notBlank(cmd); err != nil {
				return err
			}
			return a.runCancel(cmd.Context(), engine, args[0])
		},
	}
	engineFlag(cmd.Flags(), &engine)
	return cmd
}

func (a *app) runCancel(ctx context.Context, engine, arg string) error {
	c, at, id, err := a.findSent(engine, arg)
	if err != nil {
		return err
	}
	e, err := a.openCluster(ctx, c, at, a.logger(c))
	if err != nil {
		return err
	}
	defer e.Close()
	state, err := e.Look(ctx, id)
	if err != nil {
		return err
	}
	if state.End != nil {
		a.note("%s had ended: %s", id, state.End.Status)
		return nil
	}
	if err := e.Cancel(ctx, id, "canceled by "+firstOf(a.owner(), "its owner")); err != nil {
		return err
	}
	a.note("%s is canceled; marchwarden watch %s shows what there is", id, shortID(id))
	return nil
}

// handed is a task that was handed in from here, for coming back to it. Fields are only
// ever added.
type handed struct {
	ID       marchwarden.TraceID `json:"id"`
	Engine   string              `json:"engine"`
	Question string              `json:"question"`
	At       time.Time           `json:"at"`
}

func (c *config) sentPath() string { return filepath.Join(c.home(), "sent.jsonl") }

// remember writes down what was handed in. Where that cannot be, the whole id is needed.
func (a *app) remember(c *config, s handed) {
	line, err := json.Marshal(s)
	if err == nil {
		err = durable.AppendLine(c.sentPath(), append(line, '\n'))
	}
	if err != nil {
		a.warn("what was handed in could not be written down: " + cause(err))
	}
}

// maxSent bounds a line of what was handed in.
const maxSent = 16 << 10

// findSent finds the task that an argument means, and the cluster that has it: that of
// the flag, else the one to which it was handed in, else that of the settings.
func (a *app) findSent(flag, arg string) (c *config, at string, id marchwarden.TraceID, err error) {
	if c, err = a.loadConfig(); err != nil {
		return nil, "", id, err
	}
	if at, err = c.engineURLFor(flag); err != nil {
		return nil, "", id, err
	}
	all, err := readSent(c.sentPath())
	if err != nil {
		return nil, "", id, err
	}
	id, whole := marchwarden.TraceID{}, false
	if parsed, err := marchwarden.ParseTraceID(arg); err == nil {
		id, whole = parsed, true
	}
	var found []handed
	for _, s := range all {
		if arg == "last" || strings.HasPrefix(s.ID.String(), strings.ToLower(arg)) {
			found = append(found, s)
		}
	}
	switch {
	case whole && len(found) == 0:
	case arg != "last" && !whole && len(arg) < minPrefix:
		return nil, "", id, invalid("ID", "", fmt.Sprintf("%q is too short: give at least %d characters", clip(arg, 40), minPrefix))
	case arg == "last" && len(found) == 0:
		return nil, "", id, marchwarden.Errorf(marchwarden.CodeNotFound, "nothing was handed in from here yet")
	case len(found) == 0:
		return nil, "", id, &marchwarden.Error{Code: marchwarden.CodeNotFound, Message: fmt.Sprintf("nothing that was handed in from here begins with %q", clip(arg, 40)), Hint: "give the whole id"}
	case len(found) > 1 && arg != "last" && found[0].ID != found[len(found)-1].ID:
		return nil, "", id, invalid("ID", "give more characters", fmt.Sprintf("%q begins %d ids", clip(arg, 40), len(found)))
	default:
		last := found[len(found)-1]
		if id = last.ID; flag == "" {
			at = firstOf(last.Engine, at)
		}
	}
	if at == "" {
		_, err = c.needEngine(flag)
	}
	return c, at, id, err
}

// readSent reads what was handed in, oldest first. Lines that cannot be read are passed
// over.
func readSent(path string) (all []handed, err error) {
	data, err := readSettings(path)
	if err != nil {
		return nil, err
	}
	err = durable.ScanLines(strings.NewReader(string(data)), maxSent, func(l durable.Line) {
		var s handed
		if json.Unmarshal(l.Text, &s) == nil && s.ID.Valid() {
			all = append(all, s)
		}
	})
	return all, err
}
