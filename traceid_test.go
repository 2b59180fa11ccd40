package marchwarden_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

func TestTraceID(t *testing.T) {
	id, err := marchwarden.ParseTraceID(strings.ToUpper(someID))
	if err != nil || id.String() != someID || !id.Valid() {
		t.Fatalf("ParseTraceID = %v, %v, want the canonical form", id, err)
	}
	if same, _ := marchwarden.ParseTraceID(someID); same != id {
		t.Error("two spellings of one id are not equal")
	}
	var zero marchwarden.TraceID
	if zero.Valid() || zero.String() != "" {
		t.Errorf("the zero id is %q, valid %v", zero, zero.Valid())
	}
	data, err := json.Marshal(map[marchwarden.TraceID]marchwarden.TraceID{id: zero})
	if err != nil || string(data) != `{"`+someID+`":""}` {
		t.Errorf("encoded as %s, %v", data, err)
	}
	back := map[marchwarden.TraceID]marchwarden.TraceID{}
	if err := json.Unmarshal(data, &back); err != nil || back[id] != zero || len(back) != 1 {
		t.Errorf("decoded as %v, %v", back, err)
	}
}

func TestTraceIDRefuses(t *testing.T) {
	for _, s := range []string{
		"", "x", someID[:35], someID + "0", " " + someID[1:], someID[:35] + "\n", someID[:35] + "g", strings.ReplaceAll(someID, "-", "_"),
		strings.ReplaceAll(someID, "-", ""), "{" + someID + "}", "urn:uuid:" + someID, "../" + someID[3:], someID[:33] + "/..", someID[:35] + "\x00",
		"0198c0de7-a3b-7c11-9d55-3f2f6f1c9a10", "0198c0de-7a3b-7c11-9d55-3f2f6f1c9a1０",
	} {
		id, err := marchwarden.ParseTraceID(s)
		if err == nil || id.Valid() || !errors.Is(err, marchwarden.CodeInvalid) {
			t.Errorf("ParseTraceID(%q) = %q, %v, want CodeInvalid", s, id, err)
		}
		if s != "" {
			if err := new(marchwarden.TraceID).UnmarshalText([]byte(s)); err == nil {
				t.Errorf("UnmarshalText(%q) accepts it", s)
			}
		}
	}
}
