package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/streams"
)

// The kinds of entries of a record.
const (
	kindLine    = "line"    // a line of the trace
	kindClaim   = "claim"   // a worker has begun; the body may name what came before in Blobs
	kindRelease = "release" // its worker has handed it back
	kindEnd     = "end"     // the body is the dispatch.End
)

// The headers of an entry. All but the blob are on each, so that the last entry alone says
// how a task is.
const (
	headerKind    = "Mw-Kind"
	headerTask    = "Mw-Task"
	headerWorker  = "Mw-Worker"
	headerAttempt = "Mw-Attempt"
	headerDeaths  = "Mw-Deaths" // how many of the attempts before were not survived
	headerBlob    = "Mw-Blob"   // where the body is if it is long
)

// headerFlawed is on the copy of an end of an investigation that failed or whose result
// carries warnings.
const headerFlawed = "Mw-Flawed"

// maxBody is the longest body that travels in a message, in bytes.
const maxBody = 128 << 10

// head is what the headers of an entry say.
type head struct {
	kind, worker, blob string
	task               marchwarden.TraceID
	attempt, deaths    int
}

// headOf reads the headers of an entry. Something that is none is no part of a record: it
// came to the subject by another way.
func headOf(e streams.Entry) (head, bool) {
	h := head{kind: e.Header.Get(headerKind), worker: e.Header.Get(headerWorker), blob: e.Header.Get(headerBlob)}
	var err1, err2, err3 error
	h.task, err1 = marchwarden.ParseTraceID(e.Header.Get(headerTask))
	h.attempt, err2 = strconv.Atoi(e.Header.Get(headerAttempt))
	h.deaths, err3 = strconv.Atoi(e.Header.Get(headerDeaths))
	switch h.kind {
	case kindLine, kindClaim, kindRelease, kindEnd:
		return h, err1 == nil && err2 == nil && err3 == nil
	}
	return h, false
}

func (h head) header() nats.Header {
	header := nats.Header{}
	header.Set(headerKind, h.kind)
	header.Set(headerTask, h.task.String())
	header.Set(headerWorker, h.worker)
	header.Set(headerAttempt, strconv.Itoa(h.attempt))
	header.Set(headerDeaths, strconv.Itoa(h.deaths))
	if h.blob != "" {
		header.Set(headerBlob, h.blob)
	}
	return header
}

// decoded is what an entry holds.
func decoded[T any](entry streams.Entry, what string) (*T, error) {
	v := new(T)
	if err := json.Unmarshal(entry.Data, v); err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeCorrupt, "read %s in entry %d of %s", what, entry.Seq, entry.Subject)
	}
	return v, nil
}

// record is what a record says about one of its tasks.
type record struct {
	lines   bytes.Buffer // of all its tasks
	last    uint64       // the sequence of the last entry, whatever it is
	attempt int          // how often the task was begun
	deaths  int          // how often a worker began it and was not heard of again
	begun   bool         // a line was written for it
	end     *dispatch.End
	other   marchwarden.TraceID // another task that was begun in this record and has not ended
}

// read reads a record from the leader's copy, up to what is its last entry just then.
func (e *Engine) read(ctx context.Context, t dispatch.Task) (*record, error) {
	r := &record{}
	held := false // a worker began the task and neither ended it nor handed it back
	for {
		entry, found, err := e.conn.Next(ctx, logSubject(t), r.last+1)
		if err != nil {
			return nil, fmt.Errorf("read record %s: %w", t.Record, err)
		}
		if !found {
			break
		}
		r.last = entry.Seq
		h, ok := headOf(entry)
		if !ok {
			continue
		}
		if h.kind == kindLine || h.kind == kindClaim && h.blob != "" {
			line, err := e.body(ctx, h, entry.Data)
			if err != nil {
				return nil, err
			}
			r.lines.Write(line)
		}
		if h.task != t.ID {
			r.other = h.task
			if h.kind == kindEnd {
				r.other = marchwarden.TraceID{}
			}
			continue
		}
		r.begun = r.begun || h.kind == kindLine
		r.attempt, r.deaths, held = max(r.attempt, h.attempt), h.deaths, h.kind != kindRelease
		if h.kind == kindEnd && r.end == nil {
			if r.end, err = decoded[dispatch.End](entry, "the end"); err != nil {
				return nil, err
			}
		}
	}
	if held {
		r.deaths++
	}
	return r, nil
}

// Record gives the lines of a task's record, those of earlier tasks that it resumes included, up to
// the last one at this moment. A task that was not begun has none.
func (e *Engine) Record(ctx context.Context, t dispatch.Task) ([]byte, error) {
	r, err := e.read(ctx, t)
	if err != nil {
		return nil, err
	}
	return r.lines.Bytes(), nil
}

// tail is the last entry of a record.
type tail struct {
	head
	seq uint64        // 0 if there is none
	end *dispatch.End // if that is one
}

// idle says that no worker has the record, as far as it says.
func (t tail) idle() bool { return t.seq == 0 || t.kind == kindEnd || t.kind == kindRelease }

// tail reads the last entry of the record of a task. One that is no entry has no kind.
func (e *Engine) tail(ctx context.Context, t dispatch.Task) (last tail, err error) {
	entry, _, err := e.conn.Last(ctx, logSubject(t))
	if err != nil {
		return last, fmt.Errorf("look at the record of task %s: %w", t.ID, err)
	}
	last.seq = entry.Seq
	if h, ok := headOf(entry); ok {
		last.head = h
	}
	if last.kind == kindEnd {
		last.end, err = decoded[dispatch.End](entry, "the end")
	}
	return last, err
}

// body is the content of an entry, wherever it is.
func (e *Engine) body(ctx context.Context, h head, data []byte) ([]byte, error) {
	if h.blob == "" {
		return data, nil
	}
	ref, err := blob.Parse(h.blob)
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeCorrupt, "read a record")
	}
	content, err := e.blobs.Get(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("read a record: %w", err)
	}
	return content, nil
}

// write appends an entry after the one with sequence last and returns its sequence.
// ErrReleased says that another worker has the record.
func (e *Engine) write(ctx context.Context, t dispatch.Task, h head, data []byte, last uint64, id string) (uint64, error) {
	if len(data) > maxBody {
		ref, err := e.blobs.Put(ctx, data)
		if err != nil {
			return 0, err
		}
		h.blob, data = ref.String(), nil
	}
	for {
		seq, _, err := e.conn.Publish(ctx, streams.Message{Subject: logSubject(t), Header: h.header(), Data: data, ID: id, After: &last})
		if !errors.Is(err, streams.ErrFenced) {
			return seq, err
		}
		// What is not an entry fences no worker.
		entry, found, readErr := e.conn.Next(ctx, logSubject(t), last+1)
		if readErr != nil {
			return 0, readErr
		}
		if found && entry.Header.Get(nats.MsgIdHdr) == id {
			return entry.Seq, nil // it was kept, and something came after it
		}
		if _, ok := headOf(entry); !found || ok {
			return 0, fmt.Errorf("write to record %s: %w", t.Record, dispatch.ErrReleased)
		}
		last = entry.Seq
	}
}

// finish seals a record and writes how its task ended, fenced, and keeps the end.
func (e *Engine) finish(ctx context.Context, t dispatch.Task, r *record, end dispatch.End, id string) error {
	if r.lines.Len() > 0 {
		ref, err := e.blobs.Put(ctx, r.lines.Bytes())
		if err != nil {
			return fmt.Errorf("seal record %s: %w", t.Record, err)
		}
		end.Trace = ref
	}
	data, err := json.Marshal(end)
	if err != nil {
		return fmt.Errorf("encode the end of task %s: %w", t.ID, err)
	}
	h := head{kind: kindEnd, task: t.ID, worker: end.Worker, attempt: end.Attempt, deaths: r.deaths}
	seq, err := e.write(ctx, t, h, data, r.last, id)
	if err != nil {
		return err
	}
	r.last, r.end = seq, &end
	return e.copyEnd(ctx, t, end)
}
