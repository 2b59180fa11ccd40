package replay

import (
	"context"
	"fmt"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// CheckBlobs reads every blob that a trace names and fails on the first that is
// damaged or missing, naming it and the step that needs it.
func CheckBlobs(ctx context.Context, log *trace.Log, blobs blob.Store) error {
	seen := map[blob.Ref]bool{}
	for _, s := range log.Steps {
		for _, ref := range trace.Refs(s) {
			if seen[ref] {
				continue
			}
			seen[ref] = true
			if _, err := blobs.Get(ctx, ref); err != nil {
				return fmt.Errorf("step %d (%s): %w", s.Header().Step, s.Header().Action, err)
			}
		}
	}
	return nil
}
