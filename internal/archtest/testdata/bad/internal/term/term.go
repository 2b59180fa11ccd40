// Package term has a comment that is long enough to say what it owns, and imports what it must not.
package term

import _ "github.com/google/go-cmp/cmp"
import (
	_ "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	_ "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/loop"
	_ "testing"
)
