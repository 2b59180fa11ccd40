package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

func newCluster(a *app) *cobra.Command {
	return group(&cobra.Command{Use: "cluster", Short: "look at a cluster, and manage its keys"}, newClusterStatus(a), newClusterKey(a))
}

func newClusterStatus(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "status", Short: "show hubs, workers, queues, rates and limits", Args: noArgs,
		RunE: a.run(func(ctx context.Context, c *settings.Settings, _ []string) error {
			return runClusterStatus(ctx, a, c, asJSON)
		}),
	}
	engineFlag(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func runClusterStatus(ctx context.Context, a *app, c *settings.Settings, asJSON bool) error {
	at, err := c.NeedEngine()
	if err != nil {
		return err
	}
	e, err := a.openCluster(ctx, c, at, a.logger(c))
	if err != nil {
		return err
	}
	defer e.Close()
	s, err := e.Status(ctx)
	if err != nil {
		return cluster.Unreachable(ctx, at, err)
	}
	if asJSON {
		err = printJSON(a.forPrograms(), s)
	} else {
		err = writeStatus(a.stdout, a.outStyle(), s)
	}
	if err != nil {
		return err
	}
	return stuckError(s)
}

// clusterPart is the cluster of the settings, for doctor: whether it answers, and whether it has
// workers.
func clusterPart(ctx context.Context, a *app, c *settings.Settings) network.Part {
	const name = "cluster"
	at := c.Text(settings.Engine)
	if at == "" {
		return network.Part{Name: name, State: network.PartOff, Detail: settings.EnvOf(settings.Engine) + " is not set; the work is done on this machine"}
	}
	ctx, done := context.WithTimeout(ctx, cluster.DialTime)
	defer done()
	e, err := a.openCluster(ctx, c, at, a.logger(c))
	if err != nil {
		return network.Part{Name: name, State: network.PartBroken, Detail: at + " (by " + c.Label(settings.Engine) + ") does not answer: " + err.Error()}
	}
	defer e.Close()
	workers, err := e.Workers(ctx)
	if err != nil {
		return network.Part{Name: name, State: network.PartBroken, Detail: at + " (by " + c.Label(settings.Engine) + "): " + err.Error()}
	}
	return network.Part{Name: name, State: network.PartOK, Detail: fmt.Sprintf("%s (by %s) answers; %s", at, c.Label(settings.Engine), term.Plural(len(workers), "worker"))}
}
