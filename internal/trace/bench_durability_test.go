package trace

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// BenchmarkDurableLine appends lines as a run does, each synced, beside the least
// that any program could do for the same bytes: one write and one sync.
func BenchmarkDurableLine(b *testing.B) {
	d, err := OpenDir(b.TempDir(), time.Now)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	w, err := d.Create(testID(b, 1))
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	bare, err := os.Create(filepath.Join(d.Path(), "bare"))
	if err != nil {
		b.Fatal(err)
	}
	defer bare.Close()
	line, err := durable.EncodeJSON(message(7), "")
	if err != nil {
		b.Fatal(err)
	}
	var least time.Duration
	for b.Loop() {
		if err := w.Append(message(7)); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		began := time.Now()
		if _, err := bare.Write(line); err != nil {
			b.Fatal(err)
		}
		if err := bare.Sync(); err != nil {
			b.Fatal(err)
		}
		least += time.Since(began)
		b.StartTimer()
	}
	perLine := b.Elapsed() / time.Duration(b.N)
	b.ReportMetric(float64(perLine.Microseconds())/1000, "ms/line")
	b.ReportMetric(float64(b.Elapsed())/float64(least), "x-bare")
	b.ReportMetric(100*100*perLine.Seconds()/40, "%-of-40s-by-100-lines")
}
