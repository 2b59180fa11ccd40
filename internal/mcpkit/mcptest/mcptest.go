// Package mcptest is what the tests of both sides of the MCP edge share: a researcher that
// does what it is told, a result that is awkward on the wire, and an output that several
// goroutines write.
package mcptest

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// TraceIDs compares them as the values they are.
var TraceIDs = cmp.Comparer(func(a, b marchwarden.TraceID) bool { return a == b })

// Scripted is a researcher that does what its function says.
type Scripted func(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error)

// Research calls the function.
func (f Scripted) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	return f(ctx, req, sink)
}

// Sample is a whole result whose texts are awkward on the wire.
func Sample(answer string) *marchwarden.Result {
	id, err := marchwarden.ParseTraceID("0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10")
	if err != nil {
		panic(err)
	}
	r := &marchwarden.Result{
		Answer: answer,
		Citations: []marchwarden.Citation{{
			Source: "file", Locator: "embedded:utah/tomatoes.md", Title: "Tomatoes & <altitude>",
			RawExcerpt: "Tomatoes ripen “late” above 6,000 feet.\n\tUse <row covers> & patience.", Confidence: 0.9,
			ContentHash: "sha256:" + strings.Repeat("ab", 32), Span: &marchwarden.Span{Start: 10, End: 80},
		}},
		Gaps:       []marchwarden.Gap{{Topic: "frost dates", Category: marchwarden.SourceNotFound, Detail: "no document gives them"}},
		Confidence: 0.72,
		ConfidenceFactors: marchwarden.ConfidenceFactors{
			NumCorroboratingSources: 1, SourceAuthority: marchwarden.MediumAuthority, QuerySpecificityMatch: 0.5,
		},
		CostMetadata: marchwarden.CostMetadata{IterationsRun: 1, WallTimeSec: 0.25, ModelID: "extractive"},
		TraceID:      id,
		Claims:       []marchwarden.Claim{{Text: answer, Citations: []int{1}, Support: marchwarden.Supported}},
	}
	r.Normalize()
	return r
}

// Buffer is an output that several goroutines write. Its zero value is empty.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write adds to what is there.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String is what was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Within fails the test if something is not done in time.
func Within(t testing.TB, limit time.Duration, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatalf("%s took more than %v", what, limit)
	}
}
