package evidence

import (
	"hash/fnv"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
)

// order is a number that looks random and is always the same.
func order(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// untar reads a set of files of the benchmark data, or skips the test.
func untar(t *testing.T, name string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, f := range datatest.Files(t, name, func(string) bool { return true }) {
		files[strings.TrimPrefix(f.Name, "./")] = f.Data
	}
	return files
}
