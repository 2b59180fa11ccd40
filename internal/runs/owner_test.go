package runs_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
)

// rihlaOf and evidenceOf are what the result of a run of tell has.
func rihlaOf(id marchwarden.TraceID) marchwarden.TraceID {
	var n int
	if _, err := fmt.Sscanf(id.String()[24:], "%x", &n); err != nil {
		panic(err)
	}
	return idOf(n | 1<<44)
}

func evidenceOf(id marchwarden.TraceID) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(id.String())))
}

// tell is a researcher whose results have a rihla and a citation of their own.
func tell(ctx context.Context, req marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
	if strings.HasPrefix(req.Question, "fail") {
		return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "no model")
	}
	res := answer(ctx, req)
	res.Citations = []marchwarden.Citation{{ContentHash: evidenceOf(res.TraceID)}, {ContentHash: "sha256:../../etc/passwd"}, {}}
	res.Rihlas = []marchwarden.Rihla{{TraceID: rihlaOf(res.TraceID)}, {}}
	return res, nil
}

// What a caller's results show is theirs, also after a restart and in another process.
func TestOwns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := runs.Config{Dir: t.TempDir(), Researcher: research(tell)}
		witness := open(t, cfg) // saw the folder when it was empty
		d := open(t, cfg)
		r := begin(t, d, alice, ask, asCall)
		<-r.Done()
		check := func(when string, d *runs.Desk) {
			t.Helper()
			for p, want := range map[string]bool{"token:alice": true, "token:bob": false, "local": true, "": false, "token:alic": false} {
				ctx := as(access.Principal{ID: p})
				if got := []bool{d.Owns(ctx, r.ID()), d.Owns(ctx, rihlaOf(r.ID())), d.MaySee(ctx, evidenceOf(r.ID()))}; got[0] != want || got[1] != want || got[2] != want {
					t.Errorf("%s, %q: %v, want %t", when, p, got, want)
				}
			}
			for _, p := range []access.Principal{alice, access.Local()} {
				for _, hash := range []string{"", "sha256:", evidenceOf(r.ID())[7:], evidenceOf(r.ID()) + "0", strings.ToUpper(evidenceOf(r.ID())), "sha256:../../etc/passwd", "sha256:" + strings.Repeat("g", 64)} {
					if d.MaySee(as(p), hash) {
						t.Errorf("%s: %s may see %q", when, p.ID, hash)
					}
				}
				if d.Owns(as(p), marchwarden.TraceID{}) {
					t.Errorf("%s: %s owns no id", when, p.ID)
				}
			}
		}
		check("here", d)
		time.Sleep(time.Second)
		check("in another process", witness)
		_ = d.Close(context.Background())
		check("after a restart", open(t, cfg))
		cfg.Dir = ""
		d = open(t, cfg)
		r = begin(t, d, alice, ask, asCall)
		<-r.Done()
		check("without a folder", d)
	})
}

// A researcher that chooses its own id still tells its owner of it.
func TestOwnsOtherID(t *testing.T) {
	other := idOf(1 << 42)
	d := open(t, runs.Config{Dir: t.TempDir(), Researcher: research(func(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) {
		return &marchwarden.Result{TraceID: other}, nil
	})})
	r := begin(t, d, alice, ask, asCall)
	<-r.Done()
	if !d.Owns(as(alice), other) || d.Owns(as(bob), other) {
		t.Error("the trace of a result is not its owner's alone")
	}
	again := begin(t, d, alice, resume(other), asCall)
	<-again.Done()
	if again.ID() != other || !d.Owns(as(alice), r.ID()) {
		t.Errorf("gone on with as %v", again.ID())
	}
}

// No caller learns from an error whether there is a run that is not theirs.
func TestUnknown(t *testing.T) {
	d := open(t, runs.Config{Dir: t.TempDir(), Researcher: research(patient)})
	r := begin(t, d, alice, ask, asTask)
	unknown := idOf(1 << 43)
	say := func(err error, id marchwarden.TraceID) string {
		var e *marchwarden.Error
		if !errors.As(err, &e) {
			t.Fatalf("the error is %v", err)
		}
		return strings.ReplaceAll(fmt.Sprintf("%+v", *e), id.String(), "ID")
	}
	_, err := d.Find(as(bob), unknown)
	words := say(err, unknown)
	want(t, err, marchwarden.CodeNotFound, "no run "+unknown.String())
	for _, p := range []access.Principal{bob, {}} {
		if _, err := d.Find(as(p), r.ID()); say(err, r.ID()) != words {
			t.Errorf("Find of somebody else's: %v", err)
		}
	}
	for _, id := range []marchwarden.TraceID{r.ID(), unknown} {
		if _, err := d.Begin(as(bob), runs.Asked{Request: resume(id)}); say(err, id) != words {
			t.Errorf("Begin: %v", err)
		}
	}
	for _, text := range []string{"x", "../" + r.ID().String(), r.ID().String() + ".json", "..%2f" + r.ID().String()[5:], "\x1b[2J", strings.Repeat("a", 1000)} {
		_, err := d.Begin(as(bob), runs.Asked{Request: marchwarden.Request{Resume: text}, Keep: true})
		want(t, err, marchwarden.CodeNotFound, "no run ")
		if len(err.Error()) > 60 || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("the error is %q", err)
		}
	}
	if _, err := d.Find(as(access.Local()), marchwarden.TraceID{}); !errors.Is(err, marchwarden.CodeNotFound) {
		t.Errorf("no id: %v", err)
	}
}

// A damaged record is set aside and has no owner; others are not affected.
func TestDamaged(t *testing.T) {
	dir := t.TempDir()
	cfg := runs.Config{Dir: dir, Researcher: research(quick)}
	d := open(t, cfg)
	var all []*runs.Run
	for range 8 {
		r := begin(t, d, alice, ask, asTask)
		<-r.Done()
		all = append(all, r)
	}
	_ = d.Close(context.Background())
	path := func(i int) string { return filepath.Join(dir, all[i].ID().String()+".json") }
	edit := func(i int, old, new string) {
		data, err := os.ReadFile(path(i))
		if err != nil || !strings.Contains(string(data), old) {
			t.Fatalf("%s, %v", data, err)
		}
		if err := os.WriteFile(path(i), []byte(strings.Replace(string(data), old, new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edit(1, `{"format"`, `{"form`)
	edit(2, all[2].ID().String(), all[0].ID().String())
	edit(3, `"token:alice"`, `""`)
	edit(4, `"completed"`, `"finished"`)
	edit(5, `"format":1`, `"format":2`) // later, not damaged
	edit(6, `"kept":true`, `"kept":true,"mood":"fine"`)
	if err := os.Truncate(path(7), 3<<20); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, idOf(1<<40).String()+".json")); err != nil {
		t.Fatal(err)
	}
	d = open(t, cfg)
	for i, want := range []bool{true, false, false, false, false, false, true, false} {
		if d.Owns(as(alice), all[i].ID()) != want {
			t.Errorf("record %d: owned %t", i, !want)
		}
		_, err := d.Find(as(alice), all[i].ID())
		if (err == nil) != want {
			t.Errorf("record %d: %v", i, err)
		}
		_, err = os.Stat(path(i) + ".damaged")
		if aside := err == nil; aside == (want || i == 5) {
			t.Errorf("record %d: set aside %t", i, aside)
		}
	}
	if _, err := d.Find(as(access.Local()), idOf(1<<40)); !errors.Is(err, marchwarden.CodeNotFound) {
		t.Errorf("a link: %v", err)
	}
}

// Whatever is begun, resumed, cancelled and restarted by whom: a run is seen by its owner and the
// local user only.
func TestNobodySeesAnothers(t *testing.T) {
	t.Parallel()
	people := []access.Principal{alice, bob, access.Anonymous(), access.Local()}
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "runs")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		cfg := runs.Config{Dir: dir, Researcher: research(tell), Now: time.Now, NewID: newID, Name: "web"}
		if rapid.Bool().Draw(t, "no folder") {
			cfg.Dir = ""
		}
		d, err := runs.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = d.Close(context.Background()) }()
		owner := map[marchwarden.TraceID]access.Principal{}
		told := map[marchwarden.TraceID]bool{} // its result is out
		var all, touched []marchwarden.TraceID // touched by the last action
		ended := 0
		forgets := func() bool { // without a folder a desk does not remember all that ended
			ended++
			return cfg.Dir == "" && ended > 100
		}
		person := func() access.Principal { return rapid.SampledFrom(people).Draw(t, "who") }
		check := func(t *rapid.T, ids []marchwarden.TraceID) {
			for _, id := range ids {
				for _, who := range people {
					may := who.SeesAll() || who.ID == owner[id].ID
					_, err := d.Find(as(who), id)
					if found := err == nil; found && !may || !found && may && !who.SeesAll() {
						t.Fatalf("%s finds a run of %s: %v", who.ID, owner[id].ID, err)
					}
					if d.Owns(as(who), id) != may {
						t.Fatalf("%s owns a run of %s: %t", who.ID, owner[id].ID, !may)
					}
					may = who.SeesAll() || may && told[id]
					if d.Owns(as(who), rihlaOf(id)) != may || d.MaySee(as(who), evidenceOf(id)) != may {
						t.Fatalf("%s sees what a run of %s shows: %t", who.ID, owner[id].ID, !may)
					}
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				if forgets() {
					return
				}
				question := rapid.SampledFrom([]string{"why?", "fail?"}).Draw(t, "question")
				who := person()
				r, err := d.Begin(as(who), runs.Asked{Request: marchwarden.Request{Question: question}, Keep: rapid.Bool().Draw(t, "keep")})
				if err != nil {
					t.Fatal(err)
				}
				<-r.Done()
				all = append(all, r.ID())
				touched = all[len(all)-1:]
				owner[r.ID()], told[r.ID()] = who, question == "why?"
			},
			"resume": func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip()
				}
				if forgets() {
					return
				}
				id, who := rapid.SampledFrom(all).Draw(t, "run"), person()
				r, err := d.Begin(as(who), runs.Asked{Request: resume(id)})
				if may := who.SeesAll() || who.ID == owner[id].ID; may != (err == nil) {
					t.Fatalf("%s resumes a run of %s: %v", who.ID, owner[id].ID, err)
				}
				if err == nil {
					<-r.Done()
					told[id] = true
				}
				touched = []marchwarden.TraceID{id}
			},
			"restart": func(t *rapid.T) {
				if cfg.Dir == "" {
					t.Skip()
				}
				_ = d.Close(context.Background())
				if d, err = runs.Open(cfg); err != nil {
					t.Fatal(err)
				}
				d.Recover()
				touched = all
			},
			"": func(t *rapid.T) { check(t, touched) },
		})
		check(t, all)
	})
}

// What is forgotten has no owner any more, here and in another process, and nothing of it is
// left in the folder. Who may not see a run does not make it forgotten.
func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := runs.Config{Dir: t.TempDir(), Researcher: research(tell)}
		d := open(t, cfg)
		r := begin(t, d, alice, ask, asTask)
		<-r.Done()
		if err := d.Forget(as(bob), r.ID()); err != nil || !d.Owns(as(alice), r.ID()) {
			t.Errorf("by somebody else: %v", err)
		}
		for range 2 { // there is nothing to forget the second time
			if err := d.Forget(as(alice), r.ID()); err != nil {
				t.Error(err)
			}
			if _, err := d.Find(as(alice), r.ID()); !errors.Is(err, marchwarden.CodeNotFound) {
				t.Errorf("it is found: %v", err)
			}
			if d.Owns(as(alice), r.ID()) || d.MaySee(as(alice), evidenceOf(r.ID())) || open(t, cfg).Owns(as(alice), r.ID()) {
				t.Error("it is still hers")
			}
		}
		if left, err := os.ReadDir(cfg.Dir); err != nil || len(left) != 0 {
			t.Errorf("left are %v, %v", left, err)
		}
		cfg.Researcher = research(patient)
		d = open(t, cfg)
		r = begin(t, d, alice, ask, asTask)
		if err := d.Forget(as(alice), r.ID()); !errors.Is(err, marchwarden.CodeUnavailable) || !d.Owns(as(alice), r.ID()) {
			t.Errorf("one that goes on: %v", err)
		}
		r.Cancel()
		<-r.Done()
	})
}
