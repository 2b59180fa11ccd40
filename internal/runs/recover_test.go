package runs_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
)

// cutOff is a folder as a process leaves it that is killed in the middle of runs.
func cutOff(t *testing.T, cfg runs.Config, kinds ...bool) (dir string, cut []marchwarden.TraceID) {
	t.Helper()
	cfg.Dir = t.TempDir()
	cfg.Researcher = research(patient)
	d := open(t, cfg)
	for _, kind := range kinds {
		cut = append(cut, begin(t, d, alice, ask, kind).ID())
		time.Sleep(time.Millisecond) // begun one after the other
	}
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(cfg.Dir)); err != nil {
		t.Fatal(err)
	}
	_ = d.Close(context.Background())
	return dir, cut
}

// calls notes what a researcher was asked, and the owner and the chosen id it had.
type calls struct {
	mu   sync.Mutex
	list []string
}

func (c *calls) note(ctx context.Context, req marchwarden.Request) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, chosen := marchwarden.ChosenTraceID(ctx)
	what := "resume " + req.Resume
	if chosen {
		what = "begin " + id.String() + " " + req.Question
	}
	c.list = append(c.list, access.From(ctx).ID+" "+what)
	return len(c.list)
}

func TestRecoverBeforeTheFirstLine(t *testing.T) {
	dir, cut := cutOff(t, runs.Config{}, asTask)
	var c calls
	d := open(t, runs.Config{Dir: dir, Researcher: research(func(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
		if c.note(ctx, req) == 1 {
			return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "no trace %s", req.Resume)
		}
		return quick(ctx, req, sink)
	})})
	d.Recover()
	r := find(t, d, alice, cut[0])
	<-r.Done()
	status(t, r, runs.Completed)
	id := cut[0].String()
	if want := []string{"token:alice resume " + id, "token:alice begin " + id + " " + ask.Question}; !cmp.Equal(c.list, want) {
		t.Errorf("asked %q, want %q", c.list, want)
	}
}

// While another writes the trace the run is tried again, for two minutes.
func TestRecoverUnavailable(t *testing.T) {
	for _, c := range []struct {
		free  time.Duration // when the trace is
		calls int
		want  runs.Status
	}{
		{0, 1, runs.Completed}, {10 * time.Second, 5, runs.Completed}, {time.Hour, 9, runs.Failed},
	} {
		synctest.Test(t, func(t *testing.T) {
			dir, cut := cutOff(t, runs.Config{}, asTask)
			began := time.Now()
			var asked calls
			d := open(t, runs.Config{Dir: dir, MaxRunning: 1, Researcher: research(func(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
				asked.note(ctx, req)
				if time.Since(began) < c.free {
					return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "run is still going on in another process")
				}
				return quick(ctx, req, sink)
			})})
			d.Recover()
			d.Recover() // once is enough
			r := find(t, d, alice, cut[0])
			time.Sleep(500 * time.Millisecond)
			if c.calls > 1 {
				status(t, r, runs.Working)
				if d.Running() != 0 {
					t.Error("a run that waits has a slot")
				}
			}
			<-r.Done()
			status(t, r, c.want)
			if len(asked.list) != c.calls || time.Since(began) > 3*time.Minute {
				t.Errorf("asked %d times in %v", len(asked.list), time.Since(began))
			}
		})
	}
}

// No more runs go on than may, in the order in which they were begun; Cancel of one that
// waits is durable.
func TestRecoverInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, cut := cutOff(t, runs.Config{}, asTask, asTask, asTask, asTask, asTask)
		var asked calls
		var mu sync.Mutex
		most := 0
		var d *runs.Desk
		cfg := runs.Config{Dir: dir, MaxRunning: 2, Researcher: research(func(ctx context.Context, req marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
			n := asked.note(ctx, req)
			mu.Lock()
			most = max(most, d.Running())
			mu.Unlock()
			time.Sleep(time.Duration(n) * time.Second)
			return answer(ctx, req), nil
		})}
		d = open(t, cfg)
		find(t, d, alice, cut[1]).Cancel() // before Recover
		d.Recover()
		synctest.Wait()
		waits := find(t, d, alice, cut[4])
		if s := waits.State(); s.Status != runs.Working || s.Message != "waiting for its turn: number 2 in the queue" {
			t.Errorf("the last one: %+v", s)
		}
		third := find(t, d, alice, cut[3])
		third.Cancel() // in the queue
		<-third.Done()
		status(t, third, runs.Cancelled)
		_, err := third.Outcome()
		want(t, err, marchwarden.CodeCanceled, "cancelled")
		if same := begin(t, d, alice, resume(cut[4]), asCall); same != waits {
			t.Error("a run that waits is begun a second time")
		}
		<-waits.Done()
		var order []string
		for _, i := range []int{0, 2, 4} {
			order = append(order, "token:alice resume "+cut[i].String())
		}
		if !cmp.Equal(asked.list[2:], order[2:]) || len(asked.list) != 3 || most != 2 {
			t.Errorf("asked %q, at most %d", asked.list, most)
		}
		_ = d.Close(context.Background())
		d = open(t, cfg)
		for i, want := range []runs.Status{runs.Completed, runs.Cancelled, runs.Completed, runs.Cancelled, runs.Completed} {
			status(t, find(t, d, alice, cut[i]), want)
		}
	})
}

// A call that was not kept is not resumed by itself.
func TestCallIsCutOff(t *testing.T) {
	dir, cut := cutOff(t, runs.Config{}, asCall)
	d := open(t, runs.Config{Dir: dir, Researcher: research(quick)})
	d.Recover()
	r := find(t, d, alice, cut[0])
	<-r.Done()
	status(t, r, runs.Failed)
	_, err := r.Outcome()
	want(t, err, marchwarden.CodeCanceled, "cut off")
	again := begin(t, d, alice, resume(cut[0]), asCall)
	<-again.Done()
	status(t, again, runs.Completed)
}

// Runs of another researcher are not touched; their owner may see them.
func TestOtherResearcher(t *testing.T) {
	dir, cut := cutOff(t, runs.Config{Name: "arxiv"}, asTask, asCall)
	before := files(t, dir)
	d := open(t, runs.Config{Dir: dir, Researcher: research(func(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) {
		t.Error("goes on with another researcher's run")
		return nil, os.ErrInvalid
	})})
	d.Recover()
	for _, id := range cut {
		_, err := d.Find(as(alice), id)
		want(t, err, marchwarden.CodeNotFound, "no run "+id.String())
		if !d.Owns(as(alice), id) || d.Owns(as(bob), id) {
			t.Error("a run of another researcher is its owner's, and only theirs")
		}
	}
	_ = d.Close(context.Background())
	if after := files(t, dir); !cmp.Equal(before, after) {
		t.Errorf("before %v, after %v", before, after)
	}
}

// Two processes on one folder: the second leaves to the first what it runs, sees its end, and
// resumes it when the first is gone.
func TestTwoProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		g, release := gate()
		first := open(t, runs.Config{Dir: dir, Researcher: research(func(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
			if strings.HasPrefix(req.Question, "quick") {
				return g(ctx, req, sink)
			}
			return patient(ctx, req, sink)
		})})
		defer release()
		stays := begin(t, first, alice, ask, asTask)
		ends := begin(t, first, alice, marchwarden.Request{Question: "quick?"}, asTask)
		var asked calls
		second := open(t, runs.Config{Dir: dir, Researcher: research(func(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
			asked.note(ctx, req)
			return quick(ctx, req, sink)
		})})
		second.Recover()
		call := begin(t, first, alice, ask, asCall) // the second has not seen it yet
		later := begin(t, first, alice, ask, asTask)
		time.Sleep(time.Minute)
		for _, r := range []*runs.Run{stays, ends, call, later} {
			status(t, find(t, second, alice, r.ID()), runs.Working)
			if _, err := second.Find(as(bob), r.ID()); err == nil {
				t.Error("seen by somebody else")
			}
		}
		_, err := second.Begin(as(alice), runs.Asked{Request: marchwarden.Request{Resume: stays.ID().String(), Constraints: &marchwarden.Constraints{SourceFilter: "example.org"}}})
		want(t, err, marchwarden.CodeUnavailable, "is still going on")
		if r := begin(t, second, alice, resume(stays.ID()), asCall); r != find(t, second, alice, stays.ID()) {
			t.Error("it is begun a second time")
		}
		release()
		<-ends.Done()
		status(t, find(t, second, alice, ends.ID()), runs.Completed)

		guest, err := second.Begin(as(alice), runs.Asked{Request: resume(call.ID())})
		if err != nil || guest.Leave() {
			t.Errorf("a guest stops the call of another process: %v", err)
		}
		other := begin(t, first, alice, ask, asCall)
		for _, r := range []*runs.Run{later, other} {
			find(t, second, alice, r.ID()).Cancel()
			status(t, find(t, second, alice, r.ID()), runs.Cancelled)
			<-r.Done()
			status(t, r, runs.Cancelled)
		}

		if len(asked.list) != 0 {
			t.Fatalf("the second has done %q", asked.list)
		}
		if err := first.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		r := find(t, second, alice, stays.ID())
		<-r.Done()
		status(t, r, runs.Completed)
		if want := []string{"token:alice resume " + stays.ID().String()}; !cmp.Equal(asked.list, want) {
			t.Errorf("the second has done %q, want %q", asked.list, want)
		}
		status(t, find(t, second, alice, call.ID()), runs.Completed)
		for _, name := range files(t, dir) {
			if !strings.HasSuffix(name, ".json") {
				t.Errorf("left over: %s", name)
			}
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var causes []error
		cfg := runs.Config{Dir: t.TempDir(), Researcher: research(func(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
			res, err := patient(ctx, req, sink)
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			causes = append(causes, context.Cause(ctx))
			return res, err
		})}
		d := open(t, cfg)
		call, task, kept := begin(t, d, alice, ask, asCall), begin(t, d, alice, ask, asTask), begin(t, d, access.Local(), ask, asCall)
		if err := kept.Keep(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := d.Close(context.Background()); err != nil || time.Since(began) != time.Second {
			t.Errorf("Close: %v after %v", err, time.Since(began))
		}
		for _, r := range []*runs.Run{call, task, kept} {
			<-r.Done()
			if res, err := r.Outcome(); err != nil || res.TraceID != r.ID() {
				t.Errorf("what it had: %v, %v", res, err)
			}
		}
		for _, cause := range causes {
			if cause != runs.ErrShutdown {
				t.Errorf("the cause is %v", cause)
			}
		}
		status(t, call, runs.Completed)
		status(t, task, runs.Working)
		if err := d.Close(context.Background()); err != nil {
			t.Errorf("a second time: %v", err)
		}
		d.Recover() // does nothing

		d = open(t, cfg)
		status(t, find(t, d, alice, call.ID()), runs.Completed)
		for _, id := range []marchwarden.TraceID{task.ID(), kept.ID()} {
			r := find(t, d, access.Local(), id)
			status(t, r, runs.Working)
			defer func() { // it is not recovered, and no test waits for ever
				<-r.Done()
				if _, err := r.Outcome(); err == nil {
					t.Error("a run that did not go on has an outcome")
				}
			}()
		}
		if err := d.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// Research that does not heed its context delays Close by no more than the grace.
func TestCloseOverstay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, release := gate()
		dir := t.TempDir()
		d := open(t, runs.Config{Dir: dir, Researcher: g})
		call, task := begin(t, d, alice, ask, asCall), begin(t, d, alice, ask, asTask)
		began := time.Now()
		err := d.Close(context.Background())
		want(t, err, marchwarden.CodeTimeout, "2 research calls did not end")
		if time.Since(began) != 2*time.Second {
			t.Errorf("after %v", time.Since(began))
		}
		for _, r := range []*runs.Run{call, task} {
			<-r.Done()
			_, err := r.Outcome()
			want(t, err, marchwarden.CodeCanceled, "did not end in time")
			status(t, r, runs.Working)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := d.Close(ctx); err == nil || time.Since(began) != 2*time.Second {
			t.Errorf("a second time: %v after %v", err, time.Since(began))
		}
		release()
		synctest.Wait()
		if data, err := os.ReadFile(filepath.Join(dir, task.ID().String()+".json")); err != nil || !strings.Contains(string(data), `"status":"working"`) {
			t.Errorf("the record is %s, %v", data, err)
		}
	})
}

// Close while runs wait for their turn leaves them to the next process.
func TestCloseWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, cut := cutOff(t, runs.Config{}, asTask, asTask, asTask)
		d := open(t, runs.Config{Dir: dir, MaxRunning: 1, Researcher: research(patient)})
		d.Recover()
		synctest.Wait()
		var waiting []*runs.Run
		for _, id := range cut {
			waiting = append(waiting, find(t, d, alice, id))
		}
		if err := d.Close(context.Background()); err != nil {
			t.Error(err)
		}
		for i, r := range waiting {
			<-r.Done()
			status(t, r, runs.Working)
			if _, err := r.Outcome(); i > 0 {
				want(t, err, marchwarden.CodeUnavailable, "the server is shutting down")
			}
		}
		d = open(t, runs.Config{Dir: dir, Researcher: research(quick)})
		d.Recover()
		for _, id := range cut {
			r := find(t, d, alice, id)
			<-r.Done()
			status(t, r, runs.Completed)
		}
	})
}

// A desk that does not recover resumes the one run that a caller asks about.
func TestGoOn(t *testing.T) {
	cfg := runs.Config{Dir: t.TempDir(), Researcher: research(patient)}
	d := open(t, cfg)
	asked, other := begin(t, d, alice, ask, asTask), begin(t, d, alice, ask, asTask)
	if err := d.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	cfg.Researcher = research(func(ctx context.Context, req marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
		return answer(ctx, req), nil
	})
	d = open(t, cfg)
	r, err := d.Find(as(alice), asked.ID())
	if err != nil {
		t.Fatal(err)
	}
	status(t, r, runs.Working)
	r.GoOn()
	r.GoOn()
	<-r.Done()
	status(t, r, runs.Completed)
	if r, err = d.Find(as(alice), other.ID()); err != nil {
		t.Fatal(err)
	}
	status(t, r, runs.Working)
	visit, err := d.Begin(as(alice), runs.Asked{Request: resume(other.ID())}) // a caller that wants it has it resumed
	if err != nil || !visit.Attached {
		t.Fatalf("%+v, %v", visit, err)
	}
	<-visit.Done()
	status(t, r, runs.Completed)
}
