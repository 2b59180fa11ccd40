package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// CheckBlobs reads every blob that a trace names and fails on the first that is
// damaged or missing, naming it and the step that needs it.
func CheckBlobs(ctx context.Context, log *trace.Log, blobs blob.Store) error {
	for s, ref := range log.Refs() {
		if _, err := blobs.Get(ctx, ref); err != nil {
			return fmt.Errorf("step %d (%s): %w", s.Header().Step, s.Header().Action, err)
		}
	}
	return nil
}

// Difference names the first byte and the first field in which two results in JSON
// differ: the recorded one and the one of a rerun.
func Difference(want, got []byte) string {
	where := fmt.Sprintf("first difference at byte %d of %d", common(string(want), string(got)), len(want))
	var w, g any
	if json.Unmarshal(want, &w) != nil || json.Unmarshal(got, &g) != nil {
		return where
	}
	if path, a, b := firstDifference("", w, g); path != "" {
		return fmt.Sprintf("%s, in %s: %s was recorded, %s came out", where, path, a, b)
	}
	return where
}

// firstDifference walks two JSON values in order of their keys and returns the
// path of the first that differ, with both in short; "" when they are equal.
func firstDifference(path string, w, g any) (at, was, is string) {
	switch w := w.(type) {
	case map[string]any:
		if g, ok := g.(map[string]any); ok {
			return firstInObjects(path, w, g)
		}
	case []any:
		if g, ok := g.([]any); ok {
			for i := range min(len(w), len(g)) {
				if at, was, is := firstDifference(fmt.Sprintf("%s[%d]", path, i), w[i], g[i]); at != "" {
					return at, was, is
				}
			}
			if len(w) != len(g) {
				return path, fmt.Sprintf("a list of %d", len(w)), fmt.Sprintf("a list of %d", len(g))
			}
			return "", "", ""
		}
	}
	a, b := side(w), side(g)
	if a == b {
		return "", "", ""
	}
	a, b = around(a, b)
	return path, a, b
}

func firstInObjects(path string, w, g map[string]any) (at, was, is string) {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(w)), maps.Keys(g))
	slices.Sort(keys)
	for _, k := range keys {
		if at, was, is := firstDifference(strings.TrimPrefix(path+"."+k, "."), w[k], g[k]); at != "" {
			return at, was, is
		}
	}
	return "", "", ""
}

// side is a JSON value for a message.
func side(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "?" // unreachable: it was unmarshalled from JSON
	}
	return string(b)
}

// around cuts two texts to what stands near their first difference.
func around(a, b string) (string, string) {
	const before, shown = 20, 80
	from := max(0, common(a, b)-before)
	cut := func(s string) string {
		out := s[from:min(len(s), from+shown)]
		if from > 0 {
			out = "…" + out
		}
		if from+shown < len(s) {
			out += "…"
		}
		return strings.ToValidUTF8(out, "")
	}
	return cut(a), cut(b)
}

// common is how many bytes two texts begin with alike.
func common(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
