package embed_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
)

// slow counts how often it embeds each text, and takes long enough for others to come.
type slow struct {
	mu   sync.Mutex
	made map[string]int
}

func (*slow) ID() string { return diskModel }

func (s *slow) Embed(ctx context.Context, texts []string) ([]embed.Vector, error) {
	s.mu.Lock()
	for _, t := range texts {
		s.made[t]++
	}
	s.mu.Unlock()
	time.Sleep(10 * time.Millisecond)
	return vectorsOf(texts, 8), ctx.Err()
}

// A library that many tasks ask at once, through several shelves of one folder as the
// researchers of a worker have them, is embedded once. What belongs to one task alone is
// made by it.
func TestALibraryIsEmbeddedOnce(t *testing.T) {
	t.Parallel()
	dir, e := t.TempDir(), &slow{made: map[string]int{}}
	library := textsOf(0, 100)
	var g errgroup.Group
	for range 3 {
		s := open(t, dir, 0)
		for i := range 10 {
			g.Go(func() error {
				own := fmt.Sprintf("a question of task %d", i)
				got, err := embed.Cached(e, s).Embed(t.Context(), append([]string{own}, library...))
				if err == nil && (len(got) != 101 || fmt.Sprint(got[100]) != fmt.Sprint(vectorOf(library[99], 8))) {
					err = fmt.Errorf("%d vectors, the last %v", len(got), got[len(got)-1])
				}
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	made := 0
	for _, text := range library {
		made += e.made[text]
	}
	if made > 100+50 { // a task that comes last may find a few missing, and makes those at once
		t.Errorf("a library of 100 texts was embedded by %d", made)
	}
}

// A process that has a turn and stands still stops nothing, and neither does a folder
// that cannot be written; a caller who goes does not wait.
func TestATurnThatDoesNotComeIsNotWaitedFor(t *testing.T) {
	if !datatest.Full() {
		t.Skip("it waits for as long as a turn is waited for: set MARCHWARDEN_TEST_FULL=1")
	}
	t.Parallel()
	dir := t.TempDir()
	other, err := durable.Own(filepath.Join(dir, "turn"), func(f *os.File) error { return durable.Lock(f, false) })
	if err != nil {
		t.Skip(err)
	}
	defer other.Close()
	s := open(t, dir, 0)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	s.Turn(gone)()
	e := &slow{made: map[string]int{}}
	if got, err := embed.Cached(e, s).Embed(t.Context(), textsOf(0, 100)); err != nil || len(got) != 100 {
		t.Errorf("%d vectors, %v", len(got), err)
	}
	if runtime.GOOS != "windows" {
		s = open(t, filepath.Join(os.DevNull, "vectors"), 0)
		if got, err := embed.Cached(e, s).Embed(t.Context(), textsOf(200, 100)); err != nil || len(got) != 100 {
			t.Errorf("without a folder: %d vectors, %v", len(got), err)
		}
	}
}
