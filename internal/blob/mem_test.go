package blob_test

import (
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/blobtest"
)

func TestMem(t *testing.T) {
	blobtest.Run(t, func(*testing.T) blob.Store { return blob.NewMem() })
}
