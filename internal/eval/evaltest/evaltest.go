// Package evaltest is what tests of evaluation suites share: data sets written by hand,
// and a run of a suite on them with a real desk.
package evaltest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"testing"
	"testing/fstest"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/desk"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
)

// Data is a data folder in memory, by file name.
type Data map[string][]byte

// Folder is the data as a suite sees it.
func (d Data) Folder() eval.Data {
	fsys := fstest.MapFS{}
	for name, data := range d {
		fsys[name] = &fstest.MapFile{Data: data}
	}
	return eval.NewData(fsys, "testdata")
}

// Lines is the content of a .jsonl.gz: one row a line, as JSON; a row that is a string
// is a line as it stands.
func Lines(t testing.TB, rows ...any) []byte {
	t.Helper()
	return zipped(t, func(buf *bytes.Buffer) error {
		for _, row := range rows {
			line, ok := row.(string)
			if !ok {
				b, err := json.Marshal(row)
				if err != nil {
					return err
				}
				line = string(b)
			}
			buf.WriteString(line + "\n")
		}
		return nil
	})
}

// Tar is the content of a .tar.gz of files, given by name and text in turn.
func Tar(t testing.TB, namesAndTexts ...string) []byte {
	t.Helper()
	return zipped(t, func(buf *bytes.Buffer) error {
		tw := tar.NewWriter(buf)
		for i := 0; i+1 < len(namesAndTexts); i += 2 {
			text := namesAndTexts[i+1]
			if err := tw.WriteHeader(&tar.Header{Name: namesAndTexts[i], Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
				return err
			}
			if _, err := tw.Write([]byte(text)); err != nil {
				return err
			}
		}
		return tw.Close()
	})
}

func zipped(t testing.TB, write func(*bytes.Buffer) error) []byte {
	t.Helper()
	var plain, out bytes.Buffer
	if err := write(&plain); err != nil {
		t.Fatal(err)
	}
	zw := gzip.NewWriter(&out)
	if _, err := zw.Write(plain.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Env is an environment over data with the mind that needs no model, and with the
// embedder, which may be nil.
func Env(t testing.TB, data eval.Data, e embed.Embedder) eval.Env {
	t.Helper()
	x := extract.New(extract.Config{})
	t.Cleanup(func() { _ = x.Close() })
	d, err := desk.New(desk.Config{Extractor: x, Embed: e})
	if err != nil {
		t.Fatal(err)
	}
	return eval.Env{Data: data, Embed: e, Desk: d, Seed: 1, Now: desk.Today(), Say: func(s string) { t.Log(s) }}
}

// Run runs so many cases of a suite, 0 for all.
func Run(t testing.TB, s eval.Suite, env eval.Env, limit int) *eval.Report {
	t.Helper()
	report, err := eval.Run(t.Context(), s, env, eval.Options{Settings: eval.Settings{Limit: limit, Seed: env.Seed}, Parallel: 2, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// Value is a metric of a report, which must have it.
func Value(t testing.TB, r *eval.Report, metric string) float64 {
	t.Helper()
	m, ok := r.Metric(metric)
	if !ok {
		t.Fatalf("there is no metric %q among %v", metric, r.Metrics)
	}
	return m.Value
}
