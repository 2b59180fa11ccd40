package replay_test

import (
	"fmt"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
)

func TestDifference(t *testing.T) {
	tests := []struct{ want, got, says string }{
		{`{"a":1,"b":[1,2]}`, `{"a":1,"b":[1,3]}`, `byte 14 of 17: …{"a":1,"b":[1,2]}… was recorded, …{"a":1,"b":[1,3]}… came out`},
		{`{"a":1}`, `{"a":1} `, `byte 7 of 7: …{"a":1}… was recorded, …{"a":1} … came out`},
		{`{"a":1}`, ``, `byte 0 of 7: …{"a":1}… was recorded, …… came out`},
	}
	for _, tt := range tests {
		if says := replay.Difference([]byte(tt.want), []byte(tt.got)); !strings.HasSuffix(says, tt.says) {
			t.Errorf("Difference(%s, %s) = %q, want …%q", tt.want, tt.got, says, tt.says)
		}
	}
	long := strings.Repeat("é", 500)
	says := replay.Difference(fmt.Appendf(nil, `{"a":"%sx%s"}`, long, long), fmt.Appendf(nil, `{"a":"%sy%s"}`, long, long))
	if len(says) > 400 || !strings.Contains(says, "x") || !strings.Contains(says, "y") {
		t.Errorf("a long difference must be shown in short: %q", says)
	}
}
