package loop

import (
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
)

// What costs nothing is tried more often after a kill: a fetcher says that it is free
// through everything that the loop puts around it.
func TestAFreeFetcherStaysFree(t *testing.T) {
	if !replay.IsFree(reads{Fetcher: &fetch.Files{}}) {
		t.Error("a fetcher of files costs something")
	}
}
