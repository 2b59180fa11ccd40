package client

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/mcptest"
)

// TestMain runs the tests, or, in a process that they started, one of the servers
// that they talk to.
func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		serveAs(mode)
		return
	}
	if os.Getenv(programMode) != "" {
		childMain()
		return
	}
	if os.Getenv(scenarioEnv) != "" {
		if err := visit(os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	datatest.Abreast(8)
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
