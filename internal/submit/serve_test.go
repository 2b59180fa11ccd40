package submit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/dispatchtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/submit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// paper is a record that fails when it is told to.
type paper struct {
	text  []byte
	begun bool
	err   error
}

func (p *paper) Read(context.Context) ([]byte, error) { return p.text, nil }
func (p *paper) Begun() bool                          { return p.begun }
func (p *paper) Append(_ context.Context, line []byte) error {
	if p.err != nil {
		return p.err
	}
	p.text = append(p.text, line...)
	return nil
}

func TestServeBeginsOrGoesOn(t *testing.T) {
	n := 3000
	more := &marchwarden.Constraints{TokenBudget: &n}
	task := dispatchtest.Task("web")
	task.Request = marchwarden.Request{Question: "What is it?", Constraints: more}
	later := dispatchtest.Task("web")
	later.Record, later.Request = task.ID, marchwarden.Request{Question: "What is it?", Resume: task.ID.String(), Constraints: more}
	again := marchwarden.Request{Question: "What is it?", Resume: task.ID.String()}
	for name, tt := range map[string]struct {
		task  dispatch.Task
		lines *paper
		want  marchwarden.Request
	}{
		"new":                         {task, &paper{}, task.Request},
		"was begun":                   {task, &paper{text: []byte("a\n"), begun: true}, again},
		"goes on with another":        {later, &paper{text: []byte("a\n")}, later.Request},
		"went on with another before": {later, &paper{text: []byte("a\nb\n"), begun: true}, again},
	} {
		held := trace.NewHeld(time.Now)
		_, err := submit.Serve(held, func(ctx context.Context, got dispatch.Task, req marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
			if diff := cmp.Diff(tt.want, req); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			if id, ok := marchwarden.ChosenTraceID(ctx); !ok || id != task.ID || got.ID != tt.task.ID {
				t.Errorf("%s: it is to be run %s", name, id)
			}
			if _, err := held.Create(task.ID); (err == nil) != (len(tt.lines.text) == 0) {
				t.Errorf("%s: its record: %v", name, err)
			}
			return dispatchtest.Answer(task.ID, "Paris."), nil
		})(t.Context(), tt.task, tt.lines, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := held.Load(task.ID); !errors.Is(err, marchwarden.CodeNotFound) {
			t.Errorf("%s: its record is still held: %v", name, err)
		}
	}
}

// What goes on without a record is stopped before it does anything, and not handed over.
func TestServeEndsWithItsRecord(t *testing.T) {
	for name, why := range map[string]error{"released": dispatch.ErrReleased, "broken": errors.New("no server answers")} {
		held := trace.NewHeld(time.Now)
		task := dispatchtest.Task("web")
		res, err := submit.Serve(held, func(ctx context.Context, t2 dispatch.Task, _ marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
			w, err := held.Create(t2.Record)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Append(&trace.Message{}); err == nil || ctx.Err() == nil || !errors.Is(context.Cause(ctx), dispatch.ErrReleased) {
				t.Errorf("%s: %v, and its context is %v, %v", name, err, ctx.Err(), context.Cause(ctx))
			}
			return dispatchtest.Answer(t2.ID, "unrecorded"), nil
		})(t.Context(), task, &paper{err: why}, nil)
		if res != nil || !errors.Is(err, dispatch.ErrReleased) || !errors.Is(err, why) {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	ctx, stop := context.WithCancelCause(t.Context())
	stop(dispatch.ErrReleased)
	res, err := submit.Serve(trace.NewHeld(time.Now), func(context.Context, dispatch.Task, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) {
		return dispatchtest.Answer(dispatchtest.ID(), "too late"), nil
	})(ctx, dispatchtest.Task("web"), &paper{}, nil)
	if res != nil || !errors.Is(err, dispatch.ErrReleased) {
		t.Errorf("handed back: %+v, %v", res, err)
	}
}

func TestServeKeepsTheTime(t *testing.T) {
	task := dispatchtest.Task("web")
	task.Within = 20 * time.Millisecond
	res, err := submit.Serve(trace.NewHeld(time.Now), func(ctx context.Context, t dispatch.Task, _ marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
		<-ctx.Done()
		return dispatchtest.Answer(t.ID, "in part"), nil
	})(t.Context(), task, &paper{}, nil)
	if err != nil || res.Answer != "in part" {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestWorkersVerifyWhatTheyRun(t *testing.T) {
	for name, bend := range map[string]func(*dispatch.Task){
		"no id":               func(t *dispatch.Task) { t.ID = marchwarden.TraceID{} },
		"no record":           func(t *dispatch.Task) { t.Record = marchwarden.TraceID{} },
		"no investigation":    func(t *dispatch.Task) { t.Investigation = marchwarden.TraceID{} },
		"no queue":            func(t *dispatch.Task) { t.Queue = "" },
		"a path for a queue":  func(t *dispatch.Task) { t.Queue = "../web" },
		"a subject":           func(t *dispatch.Task) { t.Queue = "web.>" },
		"no such band":        func(t *dispatch.Task) { t.Priority = 3 },
		"time runs backwards": func(t *dispatch.Task) { t.Within = -1 },
		"no question":         func(t *dispatch.Task) { t.Request.Question = " " },
		"resumes itself":      func(t *dispatch.Task) { t.Request.Resume = t.ID.String() },
		"another's record":    func(t *dispatch.Task) { t.Record = dispatchtest.ID() },
		"resumes another":     func(t *dispatch.Task) { t.Record, t.Request.Resume = dispatchtest.ID(), t.ID.String() },
	} {
		task := dispatchtest.Task("web")
		bend(&task)
		_, err := submit.Serve(trace.NewHeld(time.Now), func(context.Context, dispatch.Task, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) {
			t.Errorf("%s: it is run", name)
			return nil, nil
		})(t.Context(), task, &paper{}, nil)
		if !errors.Is(err, marchwarden.CodeInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// shelf hands over what it has, and a lie for what it has not.
type shelf struct {
	dispatch.Dispatcher
	has map[string]string
}

func (s shelf) Evidence(_ context.Context, _, hash string) ([]byte, error) {
	if text, ok := s.has[hash]; ok {
		return []byte(text), nil
	}
	return []byte("a lie"), nil
}

func TestBring(t *testing.T) {
	blobs := blob.NewMem()
	ref, missing := blob.Of([]byte("a page")), blob.Of([]byte("another"))
	res := &marchwarden.Result{Citations: []marchwarden.Citation{{ContentHash: ref.String()}, {ContentHash: missing.String()}, {ContentHash: "none"}, {}}}
	if err := submit.Bring(t.Context(), blobs, shelf{has: map[string]string{ref.String(): "a page"}}, "web", res); err != nil {
		t.Fatal(err)
	}
	if got, err := blobs.Get(t.Context(), ref); err != nil || string(got) != "a page" {
		t.Errorf("%q, %v", got, err)
	}
	for _, ref := range []blob.Ref{missing, blob.Of([]byte("a lie"))} {
		if _, err := blobs.Stat(t.Context(), ref); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("%s: %v", ref, err)
		}
	}
}
