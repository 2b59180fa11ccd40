//go:build linux

package torture

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	mw "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/submit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// rights are the keys of a cluster: a file for the hubs, and a seed for each role.
type rights struct {
	file, secret string
	seeds        map[hub.Role][]byte
}

// newRights makes the keys of a cluster in a folder.
func newRights(t testing.TB, dir string) rights {
	t.Helper()
	r := rights{file: filepath.Join(dir, "keys"), secret: filepath.Join(dir, "secret"), seeds: map[hub.Role][]byte{}}
	for _, role := range hub.Roles() {
		seed, err := hub.KeysFile(r.file).Add(time.Now(), string(role), role)
		if err != nil {
			t.Fatal(err)
		}
		r.seeds[role] = seed
	}
	if err := os.WriteFile(r.secret, []byte(rand.Text()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// serving are the settings of a hub.
type serving struct {
	Name          string        `json:"name"`
	Store         string        `json:"store"`
	Listen        string        `json:"listen"`
	ClusterListen string        `json:"cluster_listen"`
	Routes        []string      `json:"routes"`
	Keys          string        `json:"keys"`
	Secret        string        `json:"secret"`
	Replicas      int           `json:"replicas"`
	Lease         time.Duration `json:"lease"`
}

func logger(name string) *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})).With("on", name)
}

// playHub is the role of a hub.
func playHub(ctx context.Context, settings json.RawMessage) (part, error) {
	var s serving
	if err := json.Unmarshal(settings, &s); err != nil {
		return nil, err
	}
	cfg := hub.Config{Name: s.Name, Store: s.Store, Listen: s.Listen, Keys: s.Keys, MaxStore: 1 << 30, ClusterListen: s.ClusterListen, Routes: s.Routes, Log: logger(s.Name)}
	if s.ClusterListen != "" {
		cfg.ClusterSecret = s.Secret
	}
	h, err := hub.Start(cfg)
	if err != nil {
		return nil, err
	}
	patient, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := h.Ready(patient); err != nil {
		return nil, err
	}
	access := mw.Config{InProcess: h, Name: s.Name, Seed: h.Seed, Now: time.Now, Log: logger(s.Name)}
	if err := mw.Prepare(patient, access, mw.Facts{Replicas: s.Replicas, Lease: s.Lease}); err != nil {
		return nil, err
	}
	engine, err := mw.Open(patient, access)
	if err != nil {
		return nil, err
	}
	keeper := mw.NewSteward(engine, s.Name)
	go keeper.Run(ctx)
	return func(do string, _ json.RawMessage) (any, error) { return nil, fmt.Errorf("a hub cannot %s", do) }, nil
}

// join opens the cluster as a worker or a client does.
func join(ctx context.Context, s joining) (*mw.Engine, error) {
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	now := time.Now
	if s.Dull {
		began := time.Now()
		now = func() time.Time { return began }
	}
	return mw.Open(limit, mw.Config{URL: s.URL, Name: s.Name, Seed: func() ([]byte, error) { return s.Seed, nil }, Now: now, Log: logger(s.Name)})
}

// playWorker is the role of a worker. It drains when it is told to end.
func playWorker(ctx context.Context, settings json.RawMessage) (part, error) {
	var s joining
	if err := json.Unmarshal(settings, &s); err != nil {
		return nil, err
	}
	engine, err := join(ctx, s)
	if err != nil {
		return nil, err
	}
	held := trace.NewHeld(time.Now)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	handle := submit.Serve(held, func(ctx context.Context, t dispatch.Task, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
		lab := researcher.Lab{Traces: held, Blobs: engine.Blobs(), Now: time.Now, NewID: newID}
		return research(ctx, lab, remote(client, s.Provider, t.Record), req, sink)
	})
	if s.Provider == "" {
		handle = func(_ context.Context, t dispatch.Task, _ dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
			return &marchwarden.Result{TraceID: t.Record}, nil
		}
	}
	working, _ := signal.NotifyContext(ctx, syscall.SIGTERM)
	go func() {
		if err := engine.Work(working, dispatch.Job{Queue: queue, Slots: s.Slots, Drain: s.Drain}, handle); err != nil {
			fmt.Fprintln(os.Stderr, "work:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}()
	return func(do string, _ json.RawMessage) (any, error) { return nil, fmt.Errorf("a worker cannot %s", do) }, nil
}
