package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Accounts keeps the accounts of a hub in order: each is prepared, and has an engine and a steward.
type Accounts struct {
	Hub    string                               // its name
	Names  func() []string                      // of all accounts that there are now
	Config func(account string) (Config, error) // how to join one
	Facts  Facts
	Log    *slog.Logger

	group sync.WaitGroup // stewards, and the watcher for new accounts
	// engines are made by one goroutine at a time: Tend, then its watcher until the group has ended.
	engines map[string]*Engine
}

// Tend prepares all accounts and keeps them in order until ctx ends, those among them whose first
// key is added later. Wait waits for the end of that. It gives what the account of that name has.
func (a *Accounts) Tend(ctx context.Context, name string) (engine *Engine, steward *Steward, err error) {
	a.engines = map[string]*Engine{}
	for _, account := range a.Names() {
		s, err := a.tend(ctx, account)
		if err != nil {
			return nil, nil, err
		}
		if account == name {
			engine, steward = a.engines[account], s
		}
	}
	a.group.Go(func() { a.newcomers(ctx) })
	return engine, steward, nil
}

// Wait waits for what Tend began.
func (a *Accounts) Wait() { a.group.Wait() }

// Close leaves all accounts, after Wait.
func (a *Accounts) Close() error {
	var errs []error
	for _, e := range a.engines {
		errs = append(errs, e.Close())
	}
	return errors.Join(errs...)
}

func (a *Accounts) tend(ctx context.Context, account string) (*Steward, error) {
	cfg, err := a.Config(account)
	if err != nil {
		return nil, err
	}
	if err := Prepare(ctx, cfg, a.Facts); err != nil {
		return nil, fmt.Errorf("prepare the account %s: %w", account, err)
	}
	e, err := Open(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open the account %s: %w", account, err)
	}
	s := NewSteward(e, a.Hub)
	a.engines[account] = e
	a.group.Go(func() { s.Run(ctx) })
	return s, nil
}

func (a *Accounts) newcomers(ctx context.Context) {
	const every = 2 * time.Second
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
		for _, account := range a.Names() {
			if a.engines[account] != nil {
				continue
			}
			if _, err := a.tend(ctx, account); err != nil && ctx.Err() == nil {
				a.Log.Error("an account cannot be used yet", "account", account, "error", err)
			}
		}
	}
}
