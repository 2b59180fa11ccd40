package bert

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"testing"
)

// shipped is the model that comes with the program, by a kernel.
func shipped(t testing.TB, k *Kernel) *model {
	t.Helper()
	m := Open("shipped", packed, vocabulary).(*model)
	m.kernel = k
	return m
}

// golden is the hash of the vectors of these texts. It changes with any bit of any
// of them, on any machine; a deliberate change of the arithmetic changes it, and the number behind
// the slash in MiniLMID.
const golden = "3181e1fc2e89f290389e2029c0a9175dc78d2c07c7d4350f54a83da07ed2ff21"

var goldenTexts = []string{
	"", "x", "How much does a lithium battery cost per kilowatt hour?", "Grüße aus Zürich: naïve café, Ελλάδα, 日本語. 😀",
	"p < 0.05; n = 12; 95% CI 1.2–3.4", strings.Repeat("Rivers carry sediment to the sea. ", 4),
}

// TestSameBits holds the promise of embed.Embedder: every kernel, every machine.
func TestSameBits(t *testing.T) {
	for _, k := range Kernels() {
		h := sha256.New()
		all, err := shipped(t, k).Embed(t.Context(), goldenTexts)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range all {
			for _, f := range v {
				h.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(f)))
			}
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != golden {
			t.Errorf("%s: the vectors have hash %s, want %s", k.Name, got, golden)
		}
	}
}

// BenchmarkEmbed runs texts of 16 to 256 tokens by every kernel, each on one
// processor.
func BenchmarkEmbed(b *testing.B) {
	for _, k := range Kernels() {
		m := shipped(b, k)
		for _, tokens := range []int{16, 64, 128, 256} {
			text := strings.Repeat("word ", tokens-2)
			b.Run(fmt.Sprintf("%s/%d", k.Name, tokens), func(b *testing.B) {
				from := processorTime()
				for b.Loop() {
					m.vector(text)
				}
				b.ReportMetric(float64((processorTime()-from).Microseconds())/1000/float64(b.N), "cpu-ms/text")
			})
		}
	}
}
