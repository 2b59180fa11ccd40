package pool

import (
	"context"
	"errors"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

// healthLimit is how long one member has to open.
const healthLimit = 20 * time.Second

// Health is how a member is. Card is empty for one that did not open; Problem says
// for people why it is not OK, and may quote the far end.
type Health struct {
	Member  dispatch.Member
	Card    Card
	OK      bool
	Problem string
	Took    time.Duration // to open; about 0 for a session that was open
}

// Health opens a session with every member that has none, all at the same time,
// and gives each twenty seconds. The order is that of configuration.
func (p *Pool) Health(ctx context.Context) []Health {
	all := make([]Health, len(p.members))
	var wg sync.WaitGroup
	for i, m := range p.members {
		wg.Go(func() { all[i] = m.health(ctx) })
	}
	wg.Wait()
	return all
}

func (m *member) health(ctx context.Context) Health {
	began := m.now()
	within, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	l, err := m.acquire(within)
	h := Health{Member: m.Member, OK: err == nil, Took: m.now().Sub(began)}
	if err == nil {
		h.Card = l.card
		return h
	}
	if v := (*verdict)(nil); errors.As(err, &v) {
		h.Card = v.card
	}
	h.Problem = err.Error()
	if within.Err() != nil && ctx.Err() == nil {
		h.Problem = "it did not open within " + healthLimit.String()
	}
	if hint := marchwarden.HintOf(err); hint != "" {
		h.Problem += "; " + hint
	}
	return h
}

// Approve takes the description that a pinned member has now for the one it must
// keep, and returns the hashes before and after; before is "" for a member that was
// never used. It opens a session of its own to ask, and closes it. An error with
// CodeInvalid says that the name is unknown or not pinned.
func (p *Pool) Approve(ctx context.Context, name string) (before, after string, err error) {
	m, err := p.find(name)
	if err != nil {
		return "", "", err
	}
	if !m.Pinned {
		return "", "", &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "researcher", Message: name + " is not pinned, so there is nothing to approve"}
	}
	card, err := await(ctx, m.log, nil, 0, "the opening of a session", func() (Card, error) {
		l, err := m.dial(ctx)
		if err != nil {
			return Card{}, err
		}
		m.discard(l.session)
		return l.card, nil
	})
	if errors.Is(err, errOverdue) || ctx.Err() != nil {
		return "", "", m.ended(ctx)
	}
	if err != nil {
		return "", "", err
	}
	after = card.ToolHash
	if err := m.pinnable(after); err != nil {
		return "", "", err
	}
	if before, _, err = m.pins.Get(name); err != nil {
		return "", "", err
	}
	if err := m.pins.Set(name, after); err != nil {
		return "", "", err
	}
	return before, after, nil
}

// verdict is the error of a member that could be reached and is not to be asked.
type verdict struct {
	error
	card Card
}

func (v *verdict) Unwrap() error { return v.error }

// admit holds the card of a member to what is set up for it, and that of a pinned
// one to its pin, or pins it. Its errors are verdicts.
func (m *member) admit(card Card) error {
	if card.Private && !m.Private {
		return &verdict{&marchwarden.Error{Code: marchwarden.CodeDenied,
			Message: "researcher " + m.Name + " reports from sources of your own, and is not set up as private",
			Hint:    "write private: true for it in config.yaml"}, card}
	}
	if !m.Pinned {
		return nil
	}
	err := m.pinnable(card.ToolHash)
	var pin string
	known := true
	if err == nil {
		pin, known, err = m.pins.Get(m.Name)
	}
	switch {
	case err != nil:
	case !known:
		err = m.pins.Set(m.Name, card.ToolHash)
	case pin != card.ToolHash:
		err = &marchwarden.Error{Code: marchwarden.CodeDenied,
			Message: "the description of the tool of " + m.Name + " changed since it was first used",
			Hint:    "look at it with 'marchwarden researchers --json', then approve it with 'marchwarden researchers approve " + m.Name + "'"}
	}
	if err != nil {
		return &verdict{err, card}
	}
	return nil
}

// pinnable says whether a hash can be kept. How it was made is known to the opener of sessions.
func (m *member) pinnable(hash string) error {
	if !validPin.MatchString(hash) {
		return marchwarden.Errorf(marchwarden.CodeMalformed, "researcher %s describes its tool by %.40q, which is no hash", m.Name, hash)
	}
	return nil
}
