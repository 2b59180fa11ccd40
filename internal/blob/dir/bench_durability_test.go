package dir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkDurableBlob stores pages of 16 KiB as a run does, beside the least that
// any program could do for the same bytes: a new file written, synced and renamed,
// and its folder synced.
func BenchmarkDurableBlob(b *testing.B) {
	path := b.TempDir()
	s := open(b, path)
	var least time.Duration
	for n := 0; b.Loop(); n++ {
		content := page(16<<10, n)
		if _, err := s.Put(context.Background(), content); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		began := time.Now()
		if err := putBare(filepath.Join(path, fmt.Sprintf("bare-%d", n)), content); err != nil {
			b.Fatal(err)
		}
		least += time.Since(began)
		b.StartTimer()
	}
	perBlob := b.Elapsed() / time.Duration(b.N)
	b.ReportMetric(float64(perBlob.Microseconds())/1000, "ms/blob")
	b.ReportMetric(float64(b.Elapsed())/float64(least), "x-bare")
	b.ReportMetric(100*30*perBlob.Seconds()/40, "%-of-40s-by-30-blobs")
}

func putBare(path string, content []byte) error {
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close(), os.Rename(path+".new", path)); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
