package desk

import (
	"context"
	"errors"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/pool"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi/derive"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
)

// filesName is who is asked: a library stands for the user's documents.
const filesName = researcher.FilesName

// investigate asks an investigator whose network has one member, the library's.
func (l *library) investigate(ctx context.Context, req marchwarden.Request, model llm.Model) (res *marchwarden.Result, err error) {
	r := l.cfg.Records
	seat := pool.Seat{Member: dispatch.Member{Name: filesName, Scope: researcher.FilesScope, Transport: "in process", Trust: dispatch.Own}}
	seat.Open = func(context.Context) (pool.Session, pool.Card, error) {
		evidence := func(ctx context.Context, hash string) ([]byte, error) { return blob.Evidence(ctx, l.blobs, hash) }
		return pool.InProcess(l.researcher(model, true), evidence, nil), pool.Card{Contract: marchwarden.ContractVersion, Description: researcher.FilesScope}, nil
	}
	network, err := pool.New(pool.Config{Seats: []pool.Seat{seat}, Now: r.Now})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, network.Close()) }()
	return pi.New(pi.Config{
		Lab: l.lab(model, false), Dispatcher: network,
		Minds: pi.Minds{Planner: func(id string) pi.Planner { return pi.PlannerFor(id, derive.New()) }, Writer: researcher.Mind},
	}).Research(ctx, req, nil)
}
