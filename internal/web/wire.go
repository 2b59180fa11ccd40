package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

var (
	// greeting begins a stream, so that the browser knows that there is one, and says
	// after how many milliseconds to come back when it breaks.
	greeting = []byte("retry: 2000\n\n")
	// silence is a comment, which browsers drop.
	silence = []byte(":\n\n")
)

// nameOf is the id of a picture. It is made of the picture alone, so that it means the
// same to another goroutine, and to the server after a restart.
func nameOf(picture []byte) string {
	sum := sha256.Sum256(picture)
	return hex.EncodeToString(sum[:12])
}

// event is an event as it goes over the wire. Data may be any text: all three ends of
// lines that browsers know are made lines of data, so that none can begin a field.
func event(name, id string, data []byte) []byte {
	out := make([]byte, 0, len(data)+len(data)/8+100)
	if id != "" {
		out = append(append(append(out, "id: "...), id...), '\n')
	}
	out = append(append(append(out, "event: "...), name...), '\n')
	for more := true; more; {
		var line []byte
		line, data, more = cutLine(data)
		out = append(append(append(out, "data: "...), line...), '\n')
	}
	return append(out, '\n')
}

// cutLine cuts data after its first line, which ends in LF, CR LF or CR.
func cutLine(data []byte) (line, rest []byte, found bool) {
	i := bytes.IndexAny(data, "\r\n")
	if i < 0 {
		return data, nil, false
	}
	line, rest = data[:i], data[i+1:]
	if data[i] == '\r' && len(rest) > 0 && rest[0] == '\n' {
		rest = rest[1:]
	}
	return line, rest, true
}

// oops is the event that says why a run cannot be watched. Unclassified faults, and the causes of
// others, are not told: they are for the log.
func oops(err error) []byte {
	said := struct {
		Code    marchwarden.Code `json:"code"`
		Message string           `json:"message"`
		Hint    string           `json:"hint,omitempty"`
	}{Code: marchwarden.CodeOf(err), Message: "the run cannot be watched; the server's log says why"}
	var known *marchwarden.Error
	if said.Code != marchwarden.CodeInternal && errors.As(err, &known) {
		said.Message, said.Hint = known.Message, marchwarden.HintOf(err)
	}
	data, err := json.Marshal(said)
	if err != nil {
		data = []byte("{}") // unreachable: strings are always JSON
	}
	return event(EventOops, "", data)
}
