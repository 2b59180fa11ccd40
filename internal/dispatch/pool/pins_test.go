package pool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

const (
	childPath = "POOL_TEST_PINS"
	childName = "POOL_TEST_NAME"
	perChild  = 6
)

// childSets pins names of its own and one that all processes share.
func childSets(path, name string) error {
	pins := FilePins(path)
	for i := range perChild {
		own := fmt.Sprintf("%s-%d", name, i)
		if err := errors.Join(pins.Set(own, "sha256:"+own), pins.Set("shared", "sha256:"+name)); err != nil {
			return err
		}
		if got, ok, err := pins.Get(own); err != nil || !ok || got != "sha256:"+own {
			return fmt.Errorf("%s was %q, %t, %v right after it was set", own, got, ok, err)
		}
	}
	return nil
}

func TestPinsOfManyProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "pins.json")
	var group errgroup.Group
	const processes = 4
	for i := range processes {
		group.Go(func() error {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childPath+"="+path, childName+"="+fmt.Sprintf("p%d", i))
			out, err := cmd.CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	}
	for i := range 2 { // and of goroutines here
		group.Go(func() error { return childSets(path, fmt.Sprintf("g%d", i)) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pins, err := decodePins(data)
	if want := (processes+2)*perChild + 1; err != nil || len(pins) != want {
		t.Errorf("%d pins of %d are there: %v", len(pins), want, err)
	}
	for name, hash := range pins {
		if name != "shared" && hash != "sha256:"+name {
			t.Errorf("%s is pinned to %s", name, hash)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if _, err := os.Stat(path + ".tmp"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a temporary file is left: %v", err)
	}
}

func TestDamagedPins(t *testing.T) {
	good := `{"version":1,"pins":{"web":"sha256:aa"}}`
	for name, tc := range map[string]struct {
		text string
		code marchwarden.Code
	}{
		"empty":         {"", marchwarden.CodeCorrupt},
		"torn":          {good[:20], marchwarden.CodeCorrupt},
		"more behind":   {good + good, marchwarden.CodeCorrupt},
		"no object":     {"[]", marchwarden.CodeCorrupt},
		"null":          {"null", marchwarden.CodeCorrupt},
		"nothing in it": {"{}", marchwarden.CodeCorrupt},
		"no pins":       {`{"version":1}`, marchwarden.CodeCorrupt},
		"no hash":       {`{"version":1,"pins":{"web":""}}`, marchwarden.CodeCorrupt},
		"bad name":      {`{"version":1,"pins":{"WEB":"sha256:aa"}}`, marchwarden.CodeCorrupt},
		"zeros":         {strings.Repeat("\x00", 50), marchwarden.CodeCorrupt},
		"too long":      {good + strings.Repeat(" ", maxPinsFile), marchwarden.CodeCorrupt},
		"later version": {`{"version":2,"pins":{"web":"sha256:aa"}}`, marchwarden.CodeUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pins.json")
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			pins := FilePins(path)
			_, ok, err := pins.Get("web")
			wantError(t, err, tc.code, "read the pins in "+path)
			if ok || !strings.Contains(marchwarden.HintOf(err), "remove it") {
				t.Errorf("ok %t, hint %q", ok, marchwarden.HintOf(err))
			}
			wantError(t, pins.Set("web", "sha256:bb"), tc.code, path)
			if now, err := os.ReadFile(path); err != nil || string(now) != tc.text {
				t.Errorf("the file was changed: %v", err)
			}
			h := &house{card: Card{ToolHash: "sha256:bb"}}
			p := configured(t, Config{Seats: []Seat{pinned(h, "web")}, Pins: pins})
			wantError(t, ask(p, "web"), tc.code, "read the pins in "+path)
		})
	}
}

func TestPinsElsewhere(t *testing.T) {
	dir := t.TempDir()
	_, _, err := FilePins(dir).Get("web")
	wantError(t, err, marchwarden.CodeUnavailable, "not a regular file")
	for _, tc := range [][2]string{{"Web", "sha256:aa"}, {"web", ""}, {"web", "a b"}, {"web", "a\n"}} {
		wantError(t, FilePins(filepath.Join(dir, "x")).Set(tc[0], tc[1]), marchwarden.CodeInvalid, "no name or no hash")
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantError(t, FilePins(filepath.Join(dir, "file", "pins")).Set("web", "aa"), marchwarden.CodeUnavailable, "the file of pins")
	stale := filepath.Join(dir, "pins.json")
	if err := os.WriteFile(stale+".tmp", []byte("left by a crash"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := FilePins(stale).Set("web", "aa"); err != nil {
		t.Error(err)
	}
	if hash, ok, err := FilePins(stale).Get("web"); hash != "aa" || !ok || err != nil {
		t.Error(hash, ok, err)
	}
}

// TestPinsWaitForTheLock has another holder that lets go, and one that does not.
func TestPinsWaitForTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pins.json")
	unlock, err := durable.LockFile(path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { unlock() })
	if err := FilePins(path).Set("web", "aa"); err != nil {
		t.Error(err)
	}
	synctest.Test(t, func(t *testing.T) {
		unlock, err := durable.LockFile(path + ".lock")
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
		wantError(t, FilePins(path).Set("web", "bb"), marchwarden.CodeUnavailable, "locked by another process")
	})
}

func FuzzPins(f *testing.F) {
	f.Add([]byte(`{"version":1,"pins":{"web":"sha256:aa","b-2":"x"}}`))
	f.Add([]byte(`{"version":1,"pins":{}}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`{"pins":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		pins, err := decodePins(data)
		if err != nil {
			if code := marchwarden.CodeOf(err); pins != nil || code != marchwarden.CodeCorrupt && code != marchwarden.CodeUnsupported {
				t.Fatalf("%v beside %v", pins, err)
			}
			return
		}
		again, err := encodePins(pins)
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodePins(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(pins, back); diff != "" {
			t.Fatal(diff)
		}
	})
}

func pinned(h *house, name string) Seat {
	s := h.seat(name)
	s.Pinned = true
	return s
}

func TestPinnedDescription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, files := &house{card: Card{ToolHash: "sha256:aa"}}, &house{card: Card{ToolHash: "sha256:ff"}}
		pins := FilePins(filepath.Join(t.TempDir(), "pins.json"))
		p := configured(t, Config{Seats: []Seat{pinned(web, "web"), files.seat("files")}, Pins: pins})
		if err := errors.Join(ask(p, "web"), ask(p, "files")); err != nil {
			t.Fatal(err)
		}
		if pin, _, err := pins.Get("web"); pin != "sha256:aa" || err != nil {
			t.Errorf("pinned: %q, %v", pin, err)
		}
		if pin, ok, err := pins.Get("files"); ok || err != nil {
			t.Errorf("pinned without need: %q, %v", pin, err)
		}
		web.card.ToolHash, files.card.ToolHash = "sha256:bb", "sha256:00"
		web.last().crash()
		files.last().crash()
		if err := ask(p, "files"); err != nil {
			t.Errorf("a seat that is not pinned: %v", err)
		}
		for range often { // a refusal is no failure of the member
			err := ask(p, "web")
			wantError(t, err, marchwarden.CodeDenied, "the description of the tool of web changed since it was first used")
			if want := "look at it with 'marchwarden researchers --json', then approve it with 'marchwarden researchers approve web'"; marchwarden.HintOf(err) != want {
				t.Errorf("hint %q", marchwarden.HintOf(err))
			}
		}
		if h := p.Health(t.Context())[0]; h.OK || h.Card.ToolHash != "sha256:bb" || !strings.Contains(h.Problem, "changed since") {
			t.Errorf("%+v", h)
		}
		before, after, err := p.Approve(t.Context(), "web")
		if before != "sha256:aa" || after != "sha256:bb" || err != nil {
			t.Error(before, after, err)
		}
		if err := ask(p, "web"); err != nil {
			t.Error(err)
		}
		p.Close()
		web.allClosed(t)
	})
}

func TestApprove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fresh, bare := &house{card: Card{ToolHash: "aa"}}, &house{}
		hung := Seat{Member: dispatch.Member{Name: "hung"}, Pinned: true, Open: func(context.Context) (Session, Card, error) {
			time.Sleep(time.Hour)
			return nil, Card{}, errors.New("late")
		}}
		down := &house{fail: func(int) error { return errors.New("refused") }}
		p := configured(t, Config{Pins: FilePins(filepath.Join(t.TempDir(), "pins.json")), Seats: []Seat{pinned(fresh, "fresh"), pinned(bare, "bare"), pinned(down, "down"), (&house{}).seat("own"), hung}})
		if before, after, err := p.Approve(t.Context(), "fresh"); before != "" || after != "aa" || err != nil {
			t.Error(before, after, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for name, tc := range map[string]struct {
			code marchwarden.Code
			part string
		}{
			"bare": {marchwarden.CodeMalformed, "which is no hash"},
			"down": {marchwarden.CodeUnavailable, "refused"},
			"own":  {marchwarden.CodeInvalid, "own is not pinned"},
		} {
			_, _, err := p.Approve(ctx, name)
			wantError(t, err, tc.code, tc.part)
		}
		_, _, err := p.Approve(ctx, "hung")
		wantError(t, err, marchwarden.CodeCanceled, "researcher hung")
		wantError(t, ask(p, "bare"), marchwarden.CodeMalformed, "which is no hash")
		time.Sleep(time.Hour)
	})
}

func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		well := &house{card: Card{Contract: "v1", Description: "d", ToolHash: "aa"}}
		slow := well.seat("slow")
		slow.Open = func(ctx context.Context) (Session, Card, error) {
			time.Sleep(2 * time.Second)
			return well.open(ctx)
		}
		hung := Seat{Member: dispatch.Member{Name: "hung"}, Open: func(ctx context.Context) (Session, Card, error) {
			<-ctx.Done()
			return nil, Card{}, ctx.Err()
		}}
		down := &house{fail: func(int) error {
			return &marchwarden.Error{Code: marchwarden.CodeDenied, Message: "token missing", Hint: "set WEB_TOKEN"}
		}}
		p := newPool(t, hung, well.seat("well"), down.seat("down"), slow)
		want := []Health{
			{Member: hung.Member, Problem: "it did not open within 20s", Took: healthLimit},
			{Member: dispatch.Member{Name: "well"}, Card: well.card, OK: true},
			{Member: dispatch.Member{Name: "down"}, Problem: "researcher down cannot be reached: token missing; set WEB_TOKEN"},
			{Member: slow.Member, Card: well.card, OK: true, Took: 2 * time.Second},
		}
		began := time.Now()
		if diff := cmp.Diff(want, p.Health(t.Context())); diff != "" {
			t.Error(diff)
		}
		if took := time.Since(began); took != healthLimit {
			t.Errorf("took %s", took)
		}
		if n := down.tries.Load(); n != 1 {
			t.Errorf("opened %d times", n)
		}
		want[3].Took = 0 // it is open now
		if diff := cmp.Diff(want, p.Health(t.Context())); diff != "" {
			t.Error(diff)
		}
	})
}

// Who calls itself private must be set up so: else what it finds would be told on.
func TestAPrivateCardNeedsAPrivateSeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told, kept := &house{card: Card{Private: true}}, &house{card: Card{Private: true}}
		private := kept.seat("kept")
		private.Private = true
		p := configured(t, Config{Seats: []Seat{told.seat("told"), private}})
		wantError(t, ask(p, "told"), marchwarden.CodeDenied, "is not set up as private")
		if err := ask(p, "kept"); err != nil {
			t.Error(err)
		}
	})
}

// An error tells whether anything can have been spent.
func TestWhoWasNotReachedWasNotAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shut := &house{fail: func(int) error { return marchwarden.Errorf(marchwarden.CodeUnavailable, "no such program") }}
		broken := &house{}
		broken.research = func(context.Context, *fake, marchwarden.Sink) (*marchwarden.Result, error) {
			return nil, marchwarden.Errorf(marchwarden.CodeDenied, "its search was refused")
		}
		p := configured(t, Config{Seats: []Seat{shut.seat("shut"), broken.seat("broken")}})
		if err := ask(p, "shut"); !errors.Is(err, dispatch.ErrNotAsked) || marchwarden.CodeOf(err) != marchwarden.CodeUnavailable {
			t.Errorf("shut: %v", err)
		}
		if err := ask(p, "broken"); err == nil || errors.Is(err, dispatch.ErrNotAsked) {
			t.Errorf("broken: %v", err)
		}
	})
}
