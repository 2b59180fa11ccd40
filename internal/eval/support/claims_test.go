package support

import (
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// What the judge as it is shipped reaches on the claims of this project. The open half
// is what its cuts were read off. They are to become 0, 0.6 and 0.
const (
	mostFalse      = 1    // false claims called supported, of the other half
	leastTrue      = 0.34 // share of the true claims called supported
	mostTrueDenied = 1    // true claims called unsupported or contradicted
)

// TestClaims judges one claim of five; all, and the share of the true ones, where
// MARCHWARDEN_TEST_FULL is set.
func TestClaims(t *testing.T) {
	r := reader.New()
	pairs, err := ownClaims(eval.Data{})
	if err != nil || len(pairs) != 130 {
		t.Fatalf("%d claims, %v", len(pairs), err)
	}
	supported, denied, n := map[verify.Verdict]int{}, 0, map[verify.Verdict]int{}
	open := 0 // false ones of the open half
	for i, p := range pairs {
		if !datatest.Tried(i, 5) {
			continue
		}
		o, err := verify.NewJudge(r).Judge(t.Context(), p.claim, p.evidence())
		if err != nil {
			t.Fatal(err)
		}
		if p.id[0] == 'q' {
			if o.Verdict != verify.VerdictSupported {
				t.Errorf("%s is copied, and %s", p.id, o.Verdict)
			}
			continue
		}
		n[p.label]++
		switch {
		case o.Verdict == verify.VerdictSupported:
			supported[p.label]++
			if p.open && p.label != verify.VerdictSupported {
				open++
			}
		case p.label == verify.VerdictSupported && (o.Verdict == verify.VerdictUnsupported || o.Verdict == verify.VerdictContradicted):
			denied++
		}
	}
	t.Logf("supported: %d of %d false, %d of %d true; %d true ones denied", supported[verify.VerdictUnsupported], n[verify.VerdictUnsupported], supported[verify.VerdictSupported], n[verify.VerdictSupported], denied)
	few := datatest.Full() && float64(supported[verify.VerdictSupported]) < leastTrue*float64(n[verify.VerdictSupported])
	if open > 0 || supported[verify.VerdictUnsupported] > mostFalse || few || supported[verify.VerdictSupported] == 0 || denied > mostTrueDenied {
		t.Errorf("worse than it was; %d of the open false ones are supported", open)
	}
}
