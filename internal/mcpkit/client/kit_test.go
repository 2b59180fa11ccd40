package client

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/mcptest"
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

// What the tests of the client share.
type (
	scripted     = mcptest.Scripted
	lockedBuffer = mcptest.Buffer
)

var (
	sample   = mcptest.Sample
	within   = mcptest.Within
	traceIDs = mcptest.TraceIDs
)
