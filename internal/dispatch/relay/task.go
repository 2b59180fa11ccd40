package relay

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// derive is the id of a task whose caller chose none.
func (d *Dispatcher) derive(member string, req marchwarden.Request) (marchwarden.TraceID, error) {
	canonical, err := json.Marshal(req) // the fields of a struct have an order
	if err != nil {
		return marchwarden.TraceID{}, marchwarden.Wrap(err, marchwarden.CodeInvalid, "write the request")
	}
	return DeriveID("marchwarden task/1", d.cfg.Investigation.String(), d.cfg.Asker.String(), member, string(canonical))
}

// DeriveID is an id that the same parts always give, and other parts never: a UUID of
// version 8. The first part says what kind of thing is named.
func DeriveID(parts ...string) (marchwarden.TraceID, error) {
	h := sha256.New()
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		h.Write([]byte(p))
	}
	b := h.Sum(nil)[:16]
	b[6] = b[6]&0x0f | 0x80
	b[8] = b[8]&0x3f | 0x80
	x := hex.EncodeToString(b)
	return marchwarden.ParseTraceID(x[:8] + "-" + x[8:12] + "-" + x[12:16] + "-" + x[16:20] + "-" + x[20:])
}
