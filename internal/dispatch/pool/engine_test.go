package pool

import (
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/dispatchtest"
)

// kill is the end of the engine's process, without grace.
func (e *Engine) kill() {
	e.mu.Lock()
	e.dead = true
	e.mu.Unlock()
	e.close()
	e.giveUpAll()
}

func TestEngine(t *testing.T) {
	dispatchtest.Run(t, func(t *testing.T) dispatchtest.Rig {
		dir, blobs := t.TempDir(), blob.NewMem()
		return dispatchtest.Rig{
			Open: func(t *testing.T, name string) dispatch.Engine {
				e, err := OpenEngine(EngineConfig{Dir: dir, Blobs: blobs, Now: time.Now, Name: name})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = e.Close() })
				return e
			},
			Kill:  func(e dispatch.Engine) { e.(*Engine).kill() },
			Lease: 200 * time.Millisecond,
		}
	})
}

// What an engine was about to take up when it was closed waits on for others.
func TestClosedBeforeATaskIsTaken(t *testing.T) {
	at, task := t.TempDir(), dispatchtest.Task("web")
	first, err := openOn(at, "first")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Submit(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	p := first.queues.Next("web")
	if p == nil {
		t.Fatal("nothing waits")
	}
	_ = first.Close()
	if h, err := first.claim(p); h != nil || err == nil {
		t.Errorf("a closed engine took up %+v, %v", h, err)
	}
	second, err := openOn(at, "second")
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if p := second.queues.Next("web"); p == nil || p.Task != task.ID {
		t.Errorf("what waits is %+v", p)
	}
}
