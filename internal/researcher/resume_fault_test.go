package researcher_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/resumetest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// When the disk is full from any write on, the answer is the same and says that it
// is not recorded; what is on the disk can be read and, once there is room, resumed to the same
// answer.
func TestTheDiskIsFullFromAnyWriteOn(t *testing.T) {
	each(t, func(t *testing.T, model bool) {
		_, want := complete(t, garden(), model, marchwarden.Constraints{})
		step := effort(5, 1, 1)
		for room := 0; ; room += step {
			b := newBench(t, resumetest.Memory(t), garden(), model)
			mem := b.Blobs
			disk := &resumetest.FullDisk{Store: mem}
			disk.Room.Store(int64(room))
			b.Blobs = blob.Rescue(disk)
			res, err := b.answer(t.Context(), request(marchwarden.Constraints{}))
			if err != nil {
				t.Fatalf("room for %d: %v", room, err)
			}
			if res.Answer != want.Answer {
				t.Fatalf("room for %d: another answer: %s", room, res.Answer)
			}
			if disk.Room.Load() >= 0 {
				if len(res.Warnings) > 0 {
					t.Errorf("there was room, and it says %v", res.Warnings)
				}
				if t.Logf("%d writes", room); room == 0 {
					t.Error("nothing was written")
				}
				break
			}
			if len(res.Warnings) != 1 || !strings.Contains(res.Warnings[0], "not recorded") {
				t.Fatalf("room for %d: warnings %q", room, res.Warnings)
			}
			log := b.Log(t)
			if log.Complete() != nil {
				t.Fatalf("room for %d: the trace says that the run is complete", room)
			}
			if err := replay.CheckBlobs(t.Context(), log, mem); err != nil {
				t.Fatalf("room for %d: %v", room, err)
			}
			b.Blobs = mem // there is room again
			done, _ := effects(log)
			b.forget()
			again, err := b.resume(t.Context(), nil)
			if err != nil {
				t.Fatalf("room for %d: %v", room, err)
			}
			b.whole(t, again)
			if !bytes.Equal(resumetest.Encode(t, again), resumetest.Encode(t, want)) {
				t.Fatalf("room for %d: another result\n%s\n%s", room, resumetest.Encode(t, again), resumetest.Encode(t, want))
			}
			for key := range b.forget() {
				if done[key] {
					t.Fatalf("room for %d: %s was recorded and is done again", room, key)
				}
			}
		}
	})
}

var (
	sumOfLine = regexp.MustCompile(`,"sum":"[0-9a-f]{16}"}\n$`)
	begins    = regexp.MustCompile(`^(\{"step":\d+,"action":"(?:web_search|fetch_url|model_call)",.*?),"action_id":"sha256:[0-9a-f]{64}"`)
)

// A trace of the first format, whose lines have no checksums and do not say which
// effect they begin, can be resumed as it is.
func TestGoOnWithTheFirstFormat(t *testing.T) {
	each(t, func(t *testing.T, model bool) {
		b, want := complete(t, garden(), model, marchwarden.Constraints{})
		lines := bytes.SplitAfter(b.Raw(t), []byte("\n"))
		for i, line := range lines {
			line = sumOfLine.ReplaceAll(line, []byte("}\n"))
			line = begins.ReplaceAll(line, []byte("$1"))
			lines[i] = bytes.Replace(line, []byte(`"format":2`), []byte(`"format":1`), 1)
		}
		if err := os.WriteFile(filepath.Join(b.Dir, resumetest.ID+".jsonl"), bytes.Join(lines, nil), 0o600); err != nil {
			t.Fatal(err)
		}
		for k := 1; k < len(lines)-1; k += 3 {
			c := b.cut(t, resumetest.Memory(t), k, 9)
			done, _ := effects(c.Log(t))
			c.forget()
			res, err := c.resume(t.Context(), nil)
			if err != nil {
				t.Fatalf("cut after %d: %v", k, err)
			}
			c.whole(t, res)
			if !bytes.Equal(resumetest.Encode(t, res), resumetest.Encode(t, want)) {
				t.Fatalf("cut after %d: another result: %s", k, resumetest.Encode(t, res))
			}
			if bytes.Contains(c.Raw(t), []byte(`"sum":"`)) {
				t.Fatalf("cut after %d: some lines have checksums", k)
			}
			for key := range c.forget() {
				if done[key] {
					t.Fatalf("cut after %d: %s is done again", k, key)
				}
			}
		}
	})
}

// Of two that resume a run at once, one does; the other waits a little and gets what that one
// brought, or is told that the run continues elsewhere.
func TestTwoGoOnAtOnce(t *testing.T) {
	for name, lasts := range map[string]time.Duration{"soon over": 10 * time.Millisecond, "long": time.Minute} {
		t.Run(name, func(t *testing.T) {
			b, want := complete(t, garden(), false, marchwarden.Constraints{})
			synctest.Test(t, func(t *testing.T) {
				c := b.cut(t, resumetest.Memory(t), 5, 0)
				c.forget()
				c.hook = func(int, string) { time.Sleep(lasts) }
				var both sync.WaitGroup
				results, errs := make([]*marchwarden.Result, 2), make([]error, 2)
				for i := range 2 {
					both.Go(func() {
						d := *c
						results[i], errs[i] = d.resume(t.Context(), nil)
					})
				}
				both.Wait()
				failed := 0
				for i, err := range errs {
					switch {
					case errors.Is(err, marchwarden.CodeUnavailable):
						failed++
					case err != nil:
						t.Fatal(err)
					case !bytes.Equal(resumetest.Encode(t, results[i]), resumetest.Encode(t, want)):
						t.Errorf("another result: %s", resumetest.Encode(t, results[i]))
					}
				}
				if (failed == 1) != (lasts > time.Second) {
					t.Errorf("%d failed: %v", failed, errs)
				}
				for key, n := range c.forget() {
					if n > 1 {
						t.Errorf("%s was asked %d times", key, n)
					}
				}
				resumes := 0
				for _, s := range c.Log(t).Steps {
					if _, ok := s.(*trace.Resume); ok {
						resumes++
					}
				}
				if resumes != 1 {
					t.Errorf("the run went on %d times", resumes)
				}
				c.whole(t, want)
			})
		})
	}
}

// A run that a reasoner of another version began continues with this one; that is said
// and recorded, and a rerun works.
func TestAnotherMindGoesOn(t *testing.T) {
	now := researcher.Mind("").ID()
	b, _ := complete(t, garden(), false, marchwarden.Constraints{})
	lines := bytes.SplitAfter(b.Raw(t), []byte("\n"))
	for i, line := range lines { // as a program before checksums wrote it
		line = sumOfLine.ReplaceAll(line, []byte("}\n"))
		line = bytes.Replace(line, []byte(`"format":2`), []byte(`"format":1`), 1)
		lines[i] = bytes.Replace(line, []byte(`"mind":"`+now+`"`), []byte(`"mind":"extractive/1"`), 1)
	}
	if err := os.WriteFile(filepath.Join(b.Dir, resumetest.ID+".jsonl"), bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	for k := 1; k < len(lines)-1; k += 4 {
		c := b.cut(t, resumetest.Memory(t), k, 0)
		res, err := c.resume(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		c.whole(t, res)
		if len(c.said) != 1 || !strings.Contains(c.said[0], "extractive/1") || !strings.Contains(c.said[0], now) {
			t.Errorf("said: %q", c.said)
		}
		if start, err := c.Log(t).Start(); err != nil || start.Mind != now {
			t.Errorf("%+v, %v", start, err)
		}
		c = c.cut(t, resumetest.Memory(t), k+2, 0) // and once more, with the same
		if res, err = c.resume(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		c.whole(t, res)
		if len(c.said) != 0 {
			t.Errorf("said: %q", c.said)
		}
	}
}
