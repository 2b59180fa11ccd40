package term

import (
	"os"
	"testing"
	"time"

	_ "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/loop"
	_ "github.com/google/go-cmp/cmp"
)

// Test files may do all of this.
func Test(t *testing.T) { _, _ = time.Now(), os.Getenv("HOME") }
