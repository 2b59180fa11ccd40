package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpdoor"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

type workerOptions struct {
	desk    network.Options
	name    string
	slots   int
	piSlots int
	noPI    bool
	piAlone bool // takes investigations and nothing else
	probe   string
	drain   string
}

func newWorker(a *app) *cobra.Command {
	var o workerOptions
	cmd := a.verb("worker", "do research for a cluster on this machine", noArgs, func(ctx context.Context, c *settings.Settings, _ []string) error {
		drain, err := o.check()
		if err != nil {
			return err
		}
		log := a.serverLog(c)
		cfg, err := a.engineConfig(c, log)
		if err != nil {
			return err
		}
		o.desk.Warn = network.Once(func(message string) { log.Warn(message) })
		s, err := a.OpenWorker(c, o.desk, log)
		if err != nil {
			return err
		}
		if o.piAlone {
			s.Seats = nil
		}
		cfg.Name = cmp.Or(o.name, plainName(c.Text(settings.Worker)), cfg.Name)
		e, err := cluster.Await(ctx, cfg, a.note)
		if errors.Is(err, errInterrupted) {
			return s.Close() // told to end, which is how a worker ends
		}
		if err != nil {
			return errors.Join(err, s.Close())
		}
		s.Employ(e)
		err = serveTasks(ctx, a, s, e, cfg.Name, s.Jobs(o.slots, o.piSlots, drain), o.probe)
		return errors.Join(err, s.Close(), e.Close())
	})
	f := cmd.Flags()
	engineFlag(f)
	f.StringVar(&o.name, "name", "", "the `NAME` of the worker, for people (default made of the host's)")
	countFlag(f, &o.slots, "slots", 32, 1, maxSlots, "work on `N` tasks of each researcher at once")
	f.IntVar(&o.piSlots, "pi-slots", 16, "work on `N` investigations at once")
	f.BoolVar(&o.noPI, "no-pi", false, "take no investigations")
	f.StringVar(&o.drain, "drain", "60s", "when told to end, let tasks go on for this `TIME`")
	f.StringVar(&o.probe, "probe", "", "serve /healthz and /readyz at this `ADDRESS`, such as 127.0.0.1:9642")
	optionFlags(cmd, &o.desk, append(workOptions, "researchers", "allow-egress", "timeout")...)
	f.Lookup("researchers").Usage = "`LIST` of the researchers that work here; pi alone takes investigations only (default all that this machine has)"
	return cmd
}

// maxSlots is the most that a worker may be told to do at once.
const maxSlots = 4096

// check refuses what is wrong with the options by themselves.
func (o *workerOptions) check() (drain time.Duration, err error) {
	named := len(o.desk.Researchers)
	o.desk.Researchers = slices.DeleteFunc(o.desk.Researchers, func(name string) bool { return name == settings.PI })
	withPI := len(o.desk.Researchers) < named
	o.piAlone = withPI && len(o.desk.Researchers) == 0
	switch {
	case withPI && o.noPI:
		return 0, invalid("--no-pi", "leave out one of the two", "takes no investigations, and --researchers names "+settings.PI)
	case o.piAlone && (len(o.desk.Library) > 0 || o.desk.Embedded || o.desk.DB != ""):
		return 0, invalid("--researchers", "add files or database", "names "+settings.PI+" alone, who asks others: --library, --embedded and --db are for those who work here")
	case o.piSlots < 1 || o.piSlots > maxSlots:
		return 0, invalid("--pi-slots", "--no-pi takes no investigations", fmt.Sprintf("must be from 1 to %d, not %d", maxSlots, o.piSlots))
	case o.name != "" && (plainName(o.name) != o.name || len(o.name) > 64):
		return 0, invalid("--name", "", "must be 1 to 64 letters, digits, dashes or underscores")
	}
	if o.noPI {
		o.piSlots = 0
	}
	if o.probe, err = probeAt(o.probe); err != nil {
		return 0, err
	}
	return flagTime("--drain", o.drain, false)
}

// serveTasks works until ctx ends and everything is drained, and says so to those who look.
func serveTasks(ctx context.Context, a *app, s *network.Worker, e *cluster.Engine, name string, jobs []dispatch.Job, probe string) error {
	open, stop := context.WithCancel(context.WithoutCancel(ctx)) // what others see goes on while it drains
	defer stop()
	err := serveProbe(open, a, probe, func() error {
		if ctx.Err() != nil {
			return errors.New("draining")
		}
		return e.Ready()
	})
	if err != nil {
		return err
	}
	since := s.Host.Now().UTC()
	say := func() cluster.Presence {
		p := cluster.Presence{Name: name, Version: programVersion(), Since: since, Draining: ctx.Err() != nil, Queues: map[string]cluster.Load{}}
		for _, member := range s.Members() {
			member.Transport = "worker " + name // a command line stays private
			p.Members = append(p.Members, member)
		}
		for _, job := range jobs {
			p.Queues[job.Queue] = cluster.Load{Slots: job.Slots, Busy: s.Busy(job.Queue)}
		}
		return p
	}
	var saying sync.WaitGroup
	saying.Go(func() { e.Announce(open, say) })
	var serves []string
	for _, j := range jobs {
		serves = append(serves, fmt.Sprintf("%s (%d)", j.Queue, j.Slots))
	}
	a.note("worker %s serves %s; Ctrl-C drains", name, strings.Join(serves, ", "))
	draining := context.AfterFunc(ctx, func() { a.note("draining: no more tasks are taken") })
	defer draining()
	err = s.Work(ctx, jobs)
	stop()
	saying.Wait()
	if err == nil {
		a.note("worker %s has ended", name)
	}
	return err
}

// probeAt completes the address of --probe; "" stays what it is.
func probeAt(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	return listenAt("--probe", text)
}

// serveProbe says in the background, until ctx ends, whether this process lives and is ready. Without
// an address it does nothing.
func serveProbe(ctx context.Context, a *app, at string, ready func() error) error {
	if at == "" {
		return nil
	}
	l, err := listenOn(at, "choose another one")
	if err != nil {
		return err
	}
	a.note("health at http://%s/readyz", l.Addr())
	go func() {
		if err := httpdoor.Probe(ctx, l, ready); err != nil {
			a.warn(err.Error())
		}
	}()
	return nil
}
