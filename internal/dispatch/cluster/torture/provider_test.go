//go:build linux

package torture

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// rihlaHeader names the run that pays for a call.
const rihlaHeader = "Rihla"

// payments are how often a run paid for each thing that it asked for.
type payments map[marchwarden.TraceID]map[string]int

// till counts what is paid for. It is safe for concurrent use.
type till struct {
	latency time.Duration

	mu   sync.Mutex // guards what follows
	paid payments
	all  int
	last time.Time
	gap  time.Duration // the longest time without a payment since begin was last called
}

func (c *till) note(rihla marchwarden.TraceID, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paid == nil {
		c.paid = payments{}
	}
	if c.paid[rihla] == nil {
		c.paid[rihla] = map[string]int{}
	}
	c.paid[rihla][key]++
	c.all++
	now := time.Now()
	c.gap, c.last = max(c.gap, now.Sub(c.last)), now
}

// begin measures the longest time without a payment anew.
func (c *till) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gap, c.last = 0, time.Now()
}

// keyOf is what is paid for.
func keyOf(kind string, in []byte) string {
	return fmt.Sprintf("%s %x", kind, sha256.Sum256(in))[:len(kind)+17]
}

// pay answers what a run asks, in this process.
func (c *till) pay(rihla marchwarden.TraceID) paying {
	return func(_ context.Context, kind string, in, out any) error {
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		c.note(rihla, keyOf(kind, raw))
		value, err := answer(kind, raw)
		if err != nil {
			return err
		}
		if raw, err = json.Marshal(value); err != nil {
			return err
		}
		return json.Unmarshal(raw, out)
	}
}

// ServeHTTP answers what a run on another host asks. It is paid for when it has come in
// whole, whether or not the caller is still there.
func (c *till) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	rihla, err := marchwarden.ParseTraceID(r.Header.Get(rihlaHeader))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	kind := r.URL.Path[1:]
	c.note(rihla, keyOf(kind, in))
	time.Sleep(c.latency)
	value, err := answer(kind, in)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(value) // a caller that has gone asks again
}

// remote pays at a provider on another host. What could not be reached is tried again
// until ctx ends; what was sent is not.
func remote(client *http.Client, address string, rihla marchwarden.TraceID) paying {
	return func(ctx context.Context, kind string, in, out any) error {
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		for {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/"+kind, bytes.NewReader(raw))
			if err != nil {
				return err
			}
			req.GetBody = nil // the client must not send it twice either
			req.Header.Set(rihlaHeader, rihla.String())
			resp, err := client.Do(req)
			var op *net.OpError
			if errors.As(err, &op) && op.Op == "dial" && ctx.Err() == nil {
				time.Sleep(100 * time.Millisecond)
				continue
			}
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return fmt.Errorf("the provider says %s", resp.Status)
			}
			return json.NewDecoder(resp.Body).Decode(out)
		}
	}
}

// provided are the settings of a provider.
type provided struct {
	Address string        `json:"address"`
	Latency time.Duration `json:"latency"`
}

// bill is what a provider was paid.
type bill struct {
	Paid payments      `json:"paid,omitempty"`
	All  int           `json:"all"`
	Gap  time.Duration `json:"gap"`
}

// playProvider is the role that is paid.
func playProvider(_ context.Context, settings json.RawMessage) (part, error) {
	var s provided
	if err := json.Unmarshal(settings, &s); err != nil {
		return nil, err
	}
	c := &till{latency: s.Latency, last: time.Now()}
	l, err := net.Listen("tcp", s.Address)
	if err != nil {
		return nil, err
	}
	go func() { _ = http.Serve(l, c) }()
	return func(do string, _ json.RawMessage) (any, error) {
		switch do {
		case "begin":
			c.begin()
			return nil, nil
		case "sum": // so far, and no list
			c.mu.Lock()
			defer c.mu.Unlock()
			return bill{All: c.all, Gap: c.gap}, nil
		case "bill":
			c.mu.Lock()
			defer c.mu.Unlock()
			return bill{Paid: c.paid, All: c.all, Gap: c.gap}, nil
		}
		return nil, fmt.Errorf("a provider cannot %s", do)
	}, nil
}

// playAsker is the role that checks whether a provider can be reached, over a connection that it
// keeps or, after that has failed, a new one.
func playAsker(_ context.Context, settings json.RawMessage) (part, error) {
	var address string
	if err := json.Unmarshal(settings, &address); err != nil {
		return nil, err
	}
	client := &http.Client{Timeout: 700 * time.Millisecond}
	return func(string, json.RawMessage) (any, error) {
		resp, err := client.Get("http://" + address + "/")
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		return err == nil, nil
	}, nil
}
