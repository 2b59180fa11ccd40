package httpapi

import (
	"bufio"
	"bytes"
	"io"
	"iter"
)

// longestLine bounds one line of an event stream; a longer one is bufio.ErrTooLong.
const longestLine = 32 << 20

// Event is one server-sent event.
type Event struct {
	Name string
	Data []byte // its data lines, joined by line breaks
}

// Events reads a stream of server-sent events. An event counts once its blank line has come: what a
// broken connection left unfinished is dropped. After an error there are no more events.
func Events(body io.Reader) iter.Seq2[Event, error] { return EventsWithin(body, longestLine) }

// EventsWithin is Events with another limit, which holds for the data of an event as well.
func EventsWithin(body io.Reader, most int) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		lines := bufio.NewScanner(body)
		lines.Buffer(nil, most)
		var name string
		var data [][]byte
		size := 0
		for lines.Scan() {
			line := lines.Bytes()
			if len(line) == 0 {
				if len(data) > 0 && !yield(Event{name, bytes.Join(data, []byte("\n"))}, nil) {
					return
				}
				name, data, size = "", nil, 0
				continue
			}
			field, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch string(field) { // a comment has no name
			case "event":
				name = string(value)
			case "data":
				data = append(data, bytes.Clone(value))
				if size += len(value) + 1; size > most {
					yield(Event{}, bufio.ErrTooLong)
					return
				}
			}
		}
		if err := lines.Err(); err != nil {
			yield(Event{}, err)
		}
	}
}
