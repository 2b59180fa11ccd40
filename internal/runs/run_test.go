package runs_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
)

func TestCancel(t *testing.T) {
	for _, kind := range []bool{asCall, asTask} {
		cfg := runs.Config{Dir: t.TempDir(), Researcher: research(patient)}
		d := open(t, cfg)
		r := begin(t, d, alice, ask, kind)
		r.Cancel()
		status(t, r, runs.Cancelled)
		r.Cancel()
		<-r.Done()
		r.Cancel()
		status(t, r, runs.Cancelled)
		if res, err := r.Outcome(); err != nil || res.TraceID != r.ID() {
			t.Errorf("%t: what it had is %v, %v", kind, res, err)
		}
		if err := d.Close(context.Background()); err != nil {
			t.Error(err)
		}
		cfg.Researcher = research(func(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) {
			t.Error("a cancelled run goes on")
			return nil, errors.New("no")
		})
		d = open(t, cfg)
		d.Recover()
		status(t, find(t, d, alice, r.ID()), runs.Cancelled)
		if err := d.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// Research that does not end when it is stopped keeps its slot.
func TestOverstay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, release := gate()
		d := open(t, runs.Config{Dir: t.TempDir(), Researcher: g, MaxRunning: 1})
		defer release()
		r := begin(t, d, alice, ask, asTask)
		r.Cancel()
		status(t, r, runs.Cancelled)
		if d.Running() != 1 {
			t.Errorf("%d running", d.Running())
		}
		next := begin(t, d, alice, ask, asCall)
		synctest.Wait()
		if said := next.State().Message; said != "waiting for its turn: number 1 in the queue" {
			t.Errorf("the next call says %q", said)
		}
		next.Cancel()
		<-next.Done()
		release()
		synctest.Wait()
		status(t, r, runs.Cancelled)
		if d.Running() != 0 {
			t.Errorf("%d running", d.Running())
		}
		again := begin(t, d, alice, resume(r.ID()), asCall)
		<-again.Done()
		status(t, again, runs.Completed)
	})
}

func TestOverstayBlocksResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, release := gate()
		d := open(t, runs.Config{Researcher: g})
		defer release()
		r := begin(t, d, alice, ask, asCall)
		r.Cancel()
		_, err := d.Begin(as(alice), runs.Asked{Request: resume(r.ID())})
		want(t, err, marchwarden.CodeUnavailable, "is still going on")
		if d.Running() != 1 {
			t.Errorf("%d running", d.Running())
		}
	})
}

func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		say := make(chan marchwarden.Event)
		d := open(t, runs.Config{Researcher: research(func(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
			for e := range say {
				sink(e)
			}
			return answer(ctx, req), nil
		})})
		var heard []string
		r, err := d.Begin(as(alice), runs.Asked{Request: ask, Sink: func(e marchwarden.Event) { heard = append(heard, e.Message) }})
		if err != nil {
			t.Fatal(err)
		}
		before := r.State()
		time.Sleep(time.Second)
		say <- marchwarden.Event{Message: "\x1b[31mreading\n" + strings.Repeat("é", 300)}
		synctest.Wait()
		s := r.State()
		if !s.Updated.After(before.Updated) || s.Created != before.Created || strings.ContainsAny(s.Message, "\x1b\n") ||
			utf8.RuneCountInString(s.Message) != 200 || !strings.HasPrefix(s.Message, "[31mreading éé") {
			t.Errorf("the state is %+v", s)
		}
		say <- marchwarden.Event{Stage: marchwarden.StageCheck}
		synctest.Wait()
		if got := r.State().Message; got != "check" {
			t.Errorf("a message without words is %q", got)
		}
		for range 200 {
			say <- marchwarden.Event{Message: "more"}
			synctest.Wait()
		}
		if got := r.State().Event; got == nil || got.Message != "more" {
			t.Errorf("the last event is %v", got)
		}
		r.End()
		r.End()
		say <- marchwarden.Event{Message: "last"}
		close(say)
		<-r.Done()
		if len(heard) != 203 || heard[202] != "more" {
			t.Errorf("heard %d", len(heard))
		}
		if got := r.State().Message; got != "last" {
			t.Errorf("the message is %q", got)
		}
	})
}

// A call that is handed over goes on after a restart, also one of the local user.
func TestKeep(t *testing.T) {
	for _, who := range []access.Principal{access.Local(), alice} {
		cfg := runs.Config{Dir: t.TempDir(), Researcher: research(patient)}
		d := open(t, cfg)
		r := begin(t, d, who, ask, asCall)
		if r.Kept() {
			t.Error("kept from the beginning")
		}
		for range 2 {
			if err := r.Keep(); err != nil || !r.Kept() {
				t.Fatalf("Keep: %v, kept %t", err, r.Kept())
			}
		}
		if err := d.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		status(t, r, runs.Working)
		var got marchwarden.Request
		cfg.Researcher = research(func(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
			got = req
			return quick(ctx, req, sink)
		})
		d = open(t, cfg)
		waiting := find(t, d, who, r.ID())
		if s := waiting.State(); s.Status != runs.Working || s.Message != "waiting to go on after a restart" || !waiting.Kept() {
			t.Errorf("before Recover: %+v", s)
		}
		d.Recover()
		<-waiting.Done()
		status(t, waiting, runs.Completed)
		if got.Resume != r.ID().String() || got.Question != "" {
			t.Errorf("asked for %+v", got)
		}
	}
}

// A call that ended a moment before it is handed over is found after a restart.
func TestKeepEnded(t *testing.T) {
	cfg := runs.Config{Dir: t.TempDir(), Researcher: research(quick)}
	d := open(t, cfg)
	r := begin(t, d, access.Local(), ask, asCall)
	<-r.Done()
	if err := r.Keep(); err != nil {
		t.Fatal(err)
	}
	_ = d.Close(context.Background())
	cfg.Recorded = func(_ context.Context, id marchwarden.TraceID) (*marchwarden.Result, error) {
		return &marchwarden.Result{TraceID: id}, nil
	}
	again := find(t, open(t, cfg), access.Local(), r.ID())
	status(t, again, runs.Completed)
	if res, err := again.Outcome(); err != nil || res.TraceID != r.ID() {
		t.Errorf("Outcome: %v, %v", res, err)
	}
}

func TestResumeAttaches(t *testing.T) {
	dir := t.TempDir()
	g, release := gate()
	d := open(t, runs.Config{Dir: dir, Researcher: g})
	defer release()
	r := begin(t, d, alice, ask, asCall)
	if same := begin(t, d, alice, resume(r.ID()), asCall); same != r || r.Kept() {
		t.Errorf("attached to another run, or kept it: %t", r.Kept())
	}
	if same := begin(t, d, access.Local(), marchwarden.Request{Resume: strings.ToUpper(r.ID().String())}, asTask); same != r || !r.Kept() {
		t.Error("a task that attaches does not keep the run")
	}
	more := 10
	_, err := d.Begin(as(alice), runs.Asked{Request: marchwarden.Request{Resume: r.ID().String(), Constraints: &marchwarden.Constraints{MaxIterations: &more}}})
	want(t, err, marchwarden.CodeUnavailable, "run "+r.ID().String()+" is still going on")
	if marchwarden.HintOf(err) == "" {
		t.Error("no hint")
	}
	release()
	<-r.Done()
}

// Whatever became of it, a run can be resumed by its owner and stays theirs.
func TestResumeAgain(t *testing.T) {
	var asked []marchwarden.Request
	fail := true
	cfg := runs.Config{Dir: t.TempDir(), Researcher: research(func(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
		asked = append(asked, req)
		if access.From(ctx).ID != alice.ID {
			t.Errorf("researched as %v", access.From(ctx))
		}
		if fail {
			return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "no model")
		}
		return quick(ctx, req, sink)
	})}
	d := open(t, cfg)
	r := begin(t, d, alice, ask, asTask)
	<-r.Done()
	status(t, r, runs.Failed)
	fail = false
	again := begin(t, d, access.Local(), resume(r.ID()), asCall)
	<-again.Done()
	if again == r || again.ID() != r.ID() || again.State().Created != r.State().Created {
		t.Errorf("another run goes on: %+v", again.State())
	}
	status(t, again, runs.Completed)
	_ = d.Close(context.Background())
	d = open(t, cfg) // also a run of which only the record is left
	third := begin(t, d, alice, resume(r.ID()), asCall)
	<-third.Done()
	status(t, third, runs.Completed)
	if len(asked) != 3 || asked[1].Resume != r.ID().String() || asked[2].Resume != r.ID().String() {
		t.Errorf("asked %+v", asked)
	}
	if third.Kept() || d.Owns(as(bob), r.ID()) || !d.Owns(as(alice), r.ID()) {
		t.Error("whose it is has changed")
	}
}

// Of many callers who resume a run at once one does, and the others have the same run.
func TestResumeRace(t *testing.T) {
	var mu sync.Mutex
	begun := 0
	open1 := make(chan struct{})
	d := open(t, runs.Config{Dir: t.TempDir(), Researcher: research(func(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
		if req.Resume == "" {
			return quick(ctx, req, sink)
		}
		mu.Lock()
		begun++
		mu.Unlock()
		<-open1
		return answer(ctx, req), nil
	}), MaxRunning: 30})
	r := begin(t, d, alice, ask, asCall)
	<-r.Done()
	got := make([]*runs.Run, 20)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			if v, err := d.Begin(as(alice), runs.Asked{Request: resume(r.ID()), Keep: i%2 == 1}); err == nil {
				got[i] = v.Run
			}
		})
	}
	wg.Wait()
	for _, other := range got {
		if other == nil || other != got[0] {
			t.Errorf("%p is not %p", other, got[0])
		}
	}
	if !got[0].Kept() || d.Running() != 1 {
		t.Errorf("kept %t, %d running", got[0].Kept(), d.Running())
	}
	close(open1)
	<-got[0].Done()
	if begun != 1 {
		t.Errorf("begun %d times", begun)
	}
}

// The caller's sink hears everything, from the first event to the last before Done.
func TestSink(t *testing.T) {
	attached := make(chan struct{})
	d := open(t, runs.Config{Researcher: research(func(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
		sink(marchwarden.Event{Message: "first"})
		<-attached
		for range 500 {
			sink(marchwarden.Event{Message: "more"})
		}
		return answer(ctx, req), nil
	})})
	var one, two []string
	r, err := d.Begin(as(alice), runs.Asked{Request: ask, Sink: func(e marchwarden.Event) { one = append(one, e.Message) }})
	if err != nil {
		t.Fatal(err)
	}
	for r.State().Message != "first" {
		time.Sleep(time.Millisecond)
	}
	if _, err := d.Begin(as(alice), runs.Asked{Request: resume(r.ID()), Sink: func(e marchwarden.Event) { two = append(two, e.Message) }}); err != nil {
		t.Fatal(err)
	}
	close(attached)
	<-r.Done()
	if len(one) != 502 || one[0] != "research started" || one[1] != "first" || len(two) != 500 {
		t.Errorf("heard %d and %d", len(one), len(two))
	}
}

// A run keeps the deadline of the call that began it.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, runs.Config{Dir: t.TempDir(), Researcher: research(patient)})
		began := time.Now()
		ctx, cancel := context.WithTimeout(as(alice), 10*time.Second)
		r, err := d.Begin(ctx, runs.Asked{Request: ask})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		<-r.Done()
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("ended after %v", took)
		}
		status(t, r.Run, runs.Completed)
		if r, err = d.Begin(ctx, runs.Asked{Request: ask}); err != nil { // its deadline has passed
			t.Fatal(err)
		}
		<-r.Done()
		status(t, r.Run, runs.Completed)
	})
}

func TestDefaults(t *testing.T) {
	d, err := runs.Open(runs.Config{Researcher: research(patient), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(context.Background())
	seen := map[marchwarden.TraceID]bool{}
	for range 8 {
		r := begin(t, d, alice, ask, asCall)
		seen[r.ID()] = r.ID().Valid()
		if kept := r.State().Kept; kept != time.Hour {
			t.Errorf("without a folder it can be asked for during %v", kept)
		}
	}
	if begin(t, d, alice, ask, asCall); d.Running() != 8 {
		t.Errorf("%d running", d.Running())
	}
	if len(seen) != 8 {
		t.Errorf("ids are not new: %v", seen)
	}
	if r := begin(t, open(t, runs.Config{Dir: t.TempDir(), Researcher: research(quick)}), alice, ask, asTask); r.State().Kept != 7*24*time.Hour {
		t.Errorf("with a folder it can be asked for during %v", r.State().Kept)
	}
}

// What is not recorded any more is said so, and what could not be read too.
func TestOutcomeUnknown(t *testing.T) {
	cfg := runs.Config{Dir: t.TempDir(), Researcher: research(quick)}
	d := open(t, cfg)
	r := begin(t, d, alice, ask, asTask)
	<-r.Done()
	_ = d.Close(context.Background())
	_, err := find(t, open(t, cfg), alice, r.ID()).Outcome()
	want(t, err, marchwarden.CodeNotFound, "is not known any more")
	cfg.Recorded = func(context.Context, marchwarden.TraceID) (*marchwarden.Result, error) {
		return nil, marchwarden.Errorf(marchwarden.CodeCorrupt, "the trace is damaged")
	}
	_, err = find(t, open(t, cfg), alice, r.ID()).Outcome()
	want(t, err, marchwarden.CodeCorrupt, "the trace is damaged")
}

// A run is stopped when the last of its callers leaves, unless it is kept.
func TestLeave(t *testing.T) {
	d := open(t, runs.Config{Dir: t.TempDir(), Researcher: research(patient)})
	visit := func(ask marchwarden.Request) *runs.Visit {
		t.Helper()
		v, err := d.Begin(as(alice), runs.Asked{Request: ask})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	one := visit(ask)
	two, three := visit(resume(one.ID())), visit(resume(one.ID()))
	if one.Attached || !two.Attached || two.Run != one.Run {
		t.Errorf("attached: %t, %t", one.Attached, two.Attached)
	}
	for range 2 {
		if two.Leave() {
			t.Error("the second of three stops the run")
		}
	}
	three.End()
	three.End()
	if three.Leave() {
		t.Error("who has gone stops the run")
	}
	status(t, one.Run, runs.Working)
	if !one.Leave() {
		t.Error("the last one does not stop the run")
	}
	<-one.Done()
	status(t, one.Run, runs.Cancelled)
	if !one.Leave() {
		t.Error("the run that has ended goes on")
	}

	kept := visit(ask)
	if err := kept.Keep(); err != nil || kept.Leave() {
		t.Errorf("Keep: %v, or it is stopped all the same", err)
	}
	status(t, kept.Run, runs.Working)
	kept.Cancel()
	if !kept.Leave() {
		t.Error("a kept run that is cancelled goes on")
	}
	<-kept.Done()
}
