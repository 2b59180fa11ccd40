package settings

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestMaskedTellsLittle: of a secret at most four characters are shown, and of a
// short one none.
func TestMaskedTellsLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringOfN(rapid.RuneFrom([]rune("abcdefghij0123456789é")), 1, 60, -1).Draw(t, "secret")
		shown := strings.TrimPrefix(masked(secret), "…")
		switch n := len([]rune(secret)); {
		case n <= 12 && shown != "":
			t.Fatalf("%q of a short secret is shown", shown)
		case n > 12 && (len([]rune(shown)) != 4 || !strings.HasSuffix(secret, shown)):
			t.Fatalf("%q of %q is shown", shown, secret)
		}
	})
}
