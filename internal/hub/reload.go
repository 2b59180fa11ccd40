package hub

import (
	"context"
	"slices"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const checkEvery = time.Second

// watchKeys takes notice of changes of the keys file until ctx ends.
func (h *Hub) watchKeys(ctx context.Context) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	var told string
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := h.Reload()
		switch {
		case err == nil:
			told = ""
		case err.Error() != told: // once
			told = err.Error()
			h.cfg.Log.Error("the keys of the hub stay as they were", "error", err)
		}
	}
}

// Reload looks at the keys file now. Keys that are new may connect when it returns, and
// connections of those that are gone are closed. If the file cannot be read, or is not
// there any more, everything stays as it was: what cannot be read removes no key, and admits none.
func (h *Hub) Reload() error {
	if h.cfg.Keys == "" {
		return nil
	}
	listed, exists, err := ReadKeys(h.cfg.Keys)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !exists && h.closed:
		return marchwarden.Errorf(marchwarden.CodeNotFound, "the keys file %s is not there any more", h.cfg.Keys)
	case exists == h.closed && slices.Equal(listed, h.listed):
		return nil
	}
	before, wasClosed := h.listed, h.closed
	h.listed, h.closed = listed, exists
	opts, err := h.options()
	if err == nil {
		err = h.server.ReloadOptions(opts)
	}
	if err != nil {
		h.listed, h.closed = before, wasClosed
		return marchwarden.Wrap(h.log.clean(err), marchwarden.CodeUnavailable, "take the keys of %s", h.cfg.Keys)
	}
	h.cfg.Log.Info("the keys of the hub have changed", "keys", len(listed))
	return nil
}
