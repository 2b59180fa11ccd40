package replay_test

import (
	"context"
	"errors"
	"runtime"
	"syscall"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// small is a disk that takes no long contents.
type small struct{ blob.Store }

func (s small) Put(ctx context.Context, content []byte) (blob.Ref, error) {
	if len(content) > 4000 {
		return blob.Ref{}, syscall.ENOSPC
	}
	return s.Store.Put(ctx, content)
}

// What another run of the same process could not store costs this one nothing.
func TestARunIsNotLostWithAnother(t *testing.T) {
	t.Parallel()
	shared := blob.Rescue(small{blob.NewMem()})
	if _, err := shared.Put(t.Context(), make([]byte, 5000)); err != nil {
		t.Fatal(err)
	}
	r := newRecord(t)
	r.blobs = shared
	j := r.journal()
	if _, err := replay.Engine(j, "fake", &engine{}).Search(t.Context(), search.Query{Text: "x"}); err != nil {
		t.Fatal(err)
	}
	if j.Lost() != nil {
		t.Errorf("all that the run has is stored, and its record is lost: %v", j.Lost())
	}
	if n := len(r.log().Steps); n != 2 {
		t.Errorf("%d steps are written", n)
	}
}

// cutOff is an engine under whose hands the process dies.
type cutOff struct{ engine }

func (*cutOff) Search(context.Context, search.Query) ([]search.Hit, error) {
	runtime.Goexit()
	return nil, nil
}

// dies does something that never returns.
func dies(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	<-done
}

// What a run had given up at an end is not asked on the way to that end, and may be
// asked past it.
func TestWhatWasGivenUpMayBeAskedLater(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	ask := func(j *replay.Recorder, e search.Engine) error {
		_, err := replay.Engine(j, "fake", e).Search(t.Context(), search.Query{Text: "x"})
		return err
	}
	note := func(j *replay.Recorder, steps ...trace.Step) {
		t.Helper()
		for _, s := range steps {
			if err := j.Note(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	first := r.journal()
	note(first, &trace.Start{TraceID: r.id, Format: trace.Format})
	dies(func() { _ = ask(first, &cutOff{}) })
	note(first, &trace.Complete{Result: blob.Of(nil)})
	if err := r.w.Close(); err != nil {
		t.Fatal(err)
	}
	j, e := r.resume(), &engine{}
	note(j, &trace.Resume{Extension: &trace.Extension{Tokens: 1}})
	if err := ask(j, e); !errors.Is(err, replay.ErrJournal) || marchwarden.CodeOf(err) != marchwarden.CodeNotRecorded || e.calls.Load() != 0 {
		t.Errorf("on the way to its end: %v after %d calls", err, e.calls.Load())
	}
	j.Past(1)
	if err := ask(j, e); err != nil || e.calls.Load() != 1 {
		t.Errorf("past its end: %v after %d calls", err, e.calls.Load())
	}
}

// A run that was cut off and got more has gone past an end that nothing closed: what it
// had given up when it ended is not asked on the way there either.
func TestWhatWasGivenUpAfterMoreForACut(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	first := r.journal()
	for _, s := range []trace.Step{&trace.Start{TraceID: r.id, Format: trace.Format}, &trace.Resume{Extension: &trace.Extension{Tokens: 1}}} {
		if err := first.Note(s); err != nil {
			t.Fatal(err)
		}
	}
	first.Past(1)
	ask := func(j *replay.Recorder, e search.Engine) error {
		_, err := replay.Engine(j, "fake", e).Search(t.Context(), search.Query{Text: "x"})
		return err
	}
	dies(func() { _ = ask(first, &cutOff{}) })
	if err := errors.Join(first.Note(&trace.Complete{Result: blob.Of(nil)}), r.w.Close()); err != nil {
		t.Fatal(err)
	}
	j, e := r.resume(), &engine{}
	j.Past(1)
	if err := ask(j, e); marchwarden.CodeOf(err) != marchwarden.CodeNotRecorded || e.calls.Load() != 0 {
		t.Errorf("on the way to its end: %v after %d calls", err, e.calls.Load())
	}
	j.Past(2)
	if err := ask(j, e); err != nil || e.calls.Load() != 1 {
		t.Errorf("past its end: %v after %d calls", err, e.calls.Load())
	}
}
