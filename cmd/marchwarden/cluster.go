package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

func newCluster(a *app) *cobra.Command {
	keys := &cobra.Command{Use: "key", Short: "make, list and remove the keys of a cluster"}
	return group(&cobra.Command{Use: "cluster", Short: "look at a cluster, and manage its keys"}, newClusterStatus(a),
		group(keys, newClusterKeyAdd(a), newClusterKeyList(a), newClusterKeyRemove(a)))
}

func newClusterStatus(a *app) *cobra.Command {
	cmd := a.listing("status", "show hubs, workers, queues and the rate", noArgs, func(ctx context.Context, c *settings.Settings, _ []string) error {
		e, err := a.openCluster(ctx, c, a.logger(c))
		if err != nil {
			return err
		}
		defer e.Close()
		s, err := e.Status(ctx)
		if err != nil {
			return cluster.Unreachable(ctx, c.Text(settings.Engine), err)
		}
		if a.json {
			err = printJSON(a.forPrograms(), s)
		} else {
			err = writeStatus(a.stdout, a.outStyle(), s)
		}
		if err != nil {
			return err
		}
		return stuckError(s)
	})
	engineFlag(cmd.Flags())
	return cmd
}

// clusterPart is the cluster of the settings, for doctor: whether it answers, and whether it has
// workers.
func clusterPart(ctx context.Context, a *app, c *settings.Settings) network.Part {
	p := network.Part{Name: "cluster", State: network.PartOff, Detail: settings.EnvOf(settings.Engine) + " is not set; the work is done on this machine"}
	at := c.Text(settings.Engine)
	if at == "" {
		return p
	}
	p.State, p.Detail = network.PartBroken, at+" (by "+c.Label(settings.Engine)+")"
	ctx, done := context.WithTimeout(ctx, cluster.DialTime)
	defer done()
	e, err := a.openCluster(ctx, c, a.logger(c))
	if err != nil {
		p.Detail += " does not answer: " + err.Error()
		return p
	}
	defer e.Close()
	workers, err := e.Workers(ctx)
	if err != nil {
		p.Detail += ": " + err.Error()
		return p
	}
	p.State, p.Detail = network.PartOK, p.Detail+" answers; "+term.Plural(len(workers), "worker")
	return p
}

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
		// What was in flight when the last worker went waits, too: it is handed to the next one that comes.
		if n := q.Waiting + q.InFlight; n > 0 && q.Workers == 0 {
			return trouble(startOne, "no worker is there for %s of the queue %s", term.Plural(n, "waiting task"), term.CleanLine(q.Name))
		}
	}
	return nil
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
			state = "behind in " + term.Plural(h.Behind, "stream")
		}
		rows = append(rows, []string{term.CleanLine(h.Name), state})
	}
	table("no hub is there", "hub", "state")
	for _, w := range s.Workers {
		rows = append(rows, workerRow(w, false))
	}
	if s.Steward != nil {
		for _, w := range s.Steward.Silent {
			rows = append(rows, workerRow(w, true))
		}
	}
	table("no worker is there; marchwarden worker starts one", "worker", "state", "busy", "version", "researchers")
	for _, q := range s.Queues {
		rows = append(rows, []string{term.CleanLine(q.Name), fmt.Sprint(q.Waiting), fmt.Sprint(q.InFlight), fmt.Sprintf("%d of %d", q.Busy, q.Slots), fmt.Sprint(q.Workers)})
	}
	table("no queue yet", "queue", "waiting", "in flight", "busy", "workers")
	out.WriteString("\n" + orderLine(s.Steward) + "\n")
	_, err := io.WriteString(w, out.String())
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print the outcome")
}

func workerRow(w cluster.Presence, silent bool) []string {
	state := "working"
	switch {
	case silent:
		state = "silent since " + w.Heard.Local().Format(time.TimeOnly)
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
	return []string{term.CleanLine(w.Name), state, fmt.Sprintf("%d of %d", busy, slots), term.CleanLine(w.Version), term.CleanLine(strings.Join(names, ", "))}
}

// orderLine says what the hub that keeps the cluster in order sees.
func orderLine(s *cluster.Stewardship) string {
	if s == nil {
		return "no hub keeps it in order at the moment"
	}
	line := fmt.Sprintf("%s under way; %.1f ended a minute", term.Plural(s.Open, "task"), s.PerMinute)
	if s.Flawed > 0 {
		line += fmt.Sprintf("; %s failed or came with a warning", term.Plural(int(s.Flawed), "answer"))
	}
	return line + "; kept in order by " + term.CleanLine(s.Name)
}

func newClusterKeyAdd(a *app) *cobra.Command {
	var role, out string
	cmd := withKeys(a, "add NAME", "make a key and write it to a file", argCount(1, 1, "one name"), func(file hub.KeysFile, before []hub.Key, args []string) error {
		name, to := args[0], a.Source().Absolute(cmp.Or(out, args[0]+".key"), a.Dir)
		if out == "" && plainName(name) != name {
			return invalid("NAME", "name the file: --out FILE", fmt.Sprintf("%q makes no name of a file", plaintext.Clip(name, 40)))
		}
		// The file first: an unused key does no harm, and one that cannot be stored is lost.
		f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return invalid("--out", "choose another name", fmt.Sprintf("%q is there already", to))
		}
		if err != nil {
			return invalid("--out", "", fmt.Sprintf("%q cannot be written: %s", to, durable.Cause(err)))
		}
		seed, err := file.Add(a.Now(), name, hub.Role(role))
		if err != nil {
			return errors.Join(asFlag(err), durable.Discard(f))
		}
		a.Hide.Learn(string(seed))
		_, err = f.Write(append(seed, '\n'))
		if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
			return marchwarden.Wrap(errors.Join(err, file.Remove(name)), marchwarden.CodeUnavailable, "write the key to %s", to)
		}
		a.note("the key %s (%s) is in %s; where it is used: %s=%s", name, role, to, settings.EnvOf(settings.EngineKey), to)
		if len(before) == 0 {
			a.note("it is the first in %s: from now on hubs with that file refuse connections without a key", file)
		}
		return nil
	})
	var roles []string
	for _, r := range hub.Roles() {
		roles = append(roles, string(r))
	}
	cmd.Flags().StringVar(&role, "role", string(hub.RoleClient), "what it is good for, its `ROLE`: "+strings.Join(roles, ", "))
	cmd.Flags().StringVar(&out, "out", "", "write the key to this new `FILE` (default NAME.key)")
	complete(cmd, "role", roles...)
	return cmd
}

// withKeys is a command that works with the keys of a cluster.
func withKeys(a *app, use, short string, args cobra.PositionalArgs, do func(file hub.KeysFile, list []hub.Key, args []string) error) *cobra.Command {
	cmd := a.verb(use, short, args, func(_ context.Context, c *settings.Settings, args []string) error {
		path := cmp.Or(c.Text(settings.HubKeys), c.ClusterKeysPath())
		list, _, err := hub.ReadKeys(path)
		if err != nil {
			return err
		}
		return do(hub.KeysFile(path), list, args)
	})
	settingFlag(cmd.Flags(), "keys", settings.HubKeys, "`FILE` of the keys (default cluster-keys.json in the home folder)")
	return cmd
}

func newClusterKeyList(a *app) *cobra.Command {
	cmd := withKeys(a, "list", "list the keys of a cluster", noArgs, func(file hub.KeysFile, list []hub.Key, _ []string) error {
		var rows [][]string
		for _, k := range list {
			rows = append(rows, []string{k.Name, string(k.Role), a.inZone(k.Created), k.Public})
		}
		none := fmt.Sprintf("there are no keys in %s yet; 'marchwarden cluster key add NAME' makes one", file)
		return a.show(append([]hub.Key{}, list...), []string{"name", "role", "created", "public half"}, rows, none)
	})
	cmd.Flags().BoolVar(&a.json, "json", false, "print JSON")
	return cmd
}

func newClusterKeyRemove(a *app) *cobra.Command {
	return withKeys(a, "remove NAME", "accept a key no longer", argCount(1, 1, "one name"), func(file hub.KeysFile, _ []hub.Key, args []string) error {
		if err := file.Remove(args[0]); err != nil {
			return err
		}
		a.note("the key %s is removed from %s; hubs cut its connections within a second", args[0], file)
		return nil
	})
}
