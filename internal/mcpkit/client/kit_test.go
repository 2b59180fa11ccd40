package client

import (
	"bytes"
	"context"
	"flag"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// TestMain runs the tests, or, in a process that they started, one of the servers
// that they talk to.
func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		serveAs(mode)
		return
	}
	// They wait more than they compute, so more of them at once than there are cores.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// traceIDs compares them as the values they are.
var traceIDs = cmp.Comparer(func(a, b marchwarden.TraceID) bool { return a == b })

// scripted is a researcher that does what its function says.
type scripted func(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error)

func (f scripted) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	return f(ctx, req, sink)
}

// sample is a whole result whose texts are awkward on the wire.
func sample(answer string) *marchwarden.Result {
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

// lockedBuffer is an output that several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func within(t *testing.T, limit time.Duration, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatalf("%s took more than %v", what, limit)
	}
}
