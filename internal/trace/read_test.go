package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

func TestDamageInTheMiddleNamesTheLine(t *testing.T) {
	lines := strings.SplitAfter(string(threeLines(t)), "\n")[:3]
	join := func(ls ...string) string { return strings.Join(ls, "") }
	for name, c := range map[string]struct{ data, want string }{
		"garbage first":           {join("garbage\n", lines[1], lines[2]), "trace line 1"},
		"garbage second":          {join(lines[0], "{\"step\":2,\n", lines[2]), "trace line 2"},
		"two lines glued":         {join(lines[0], strings.TrimSuffix(lines[1], "\n"), lines[2]), ""}, // the last line: torn
		"two lines glued, middle": {join(strings.TrimSuffix(lines[0], "\n"), lines[1], lines[2]), "trace line 1"},
		"blank line":              {join(lines[0], "\n", lines[1]), "trace line 2"},
		"line lost":               {join(lines[0], lines[2]), "trace line 2 has step 3"},
		"line twice":              {join(lines[0], lines[0], lines[1]), "trace line 2 has step 1"},
		"first line lost":         {join(lines[1], lines[2]), "trace line 1 has step 2"},
		"wrong type":              {join(lines[0], `{"step":2,"action":"agent_message","timestamp":"2026-03-01T00:00:00Z","decision":7}`, "\n", lines[2]), "trace line 2"},
		"wrong type of own field": {join(lines[0], `{"step":2,"action":"agent_message","timestamp":"2026-03-01T00:00:00Z","decision":"d","queries":"q"}`, "\n"), "trace line 2 (agent_message)"},
		"bad time":                {join(lines[0], `{"step":2,"action":"agent_message","timestamp":"yesterday","decision":"d"}`, "\n", lines[2]), "trace line 2"},
		"not an object":           {join(lines[0], "null\n", lines[2]), "trace line 2"},
		"last line of other step": {join(lines[0], lines[2]), "trace line 2 has step 3"},
		"endless line":            {join(lines[0], strings.Repeat("x", maxLine+1), "\n"), "trace line 2: longer than 4194304 bytes"},
	} {
		log, err := Read(strings.NewReader(c.data))
		if c.want == "" {
			if err != nil || log.Torn == 0 {
				t.Errorf("%s: %+v, %v, want a torn line", name, log, err)
			}
			continue
		}
		if len(log.Steps) > 1 || marchwarden.CodeOf(err) != marchwarden.CodeCorrupt || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want CodeCorrupt and %q", name, err, c.want)
		}
	}
}

// A whole JSON line without its newline was never acknowledged.
func TestLastLineWithoutNewlineIsTorn(t *testing.T) {
	data := bytes.TrimSuffix(threeLines(t), []byte("\n"))
	log, err := Read(bytes.NewReader(data))
	if err != nil || len(log.Steps) != 2 || log.Good+log.Torn != int64(len(data)) || log.Torn == 0 {
		t.Errorf("%+v, %v, want two steps and a torn line", log, err)
	}
}

// Blocks that were never written read as zeros after a power loss.
func TestZerosAtTheEndAreTorn(t *testing.T) {
	whole := threeLines(t)
	for _, tail := range []string{strings.Repeat("\x00", 4096), strings.Repeat("\x00", 100) + "\n"} {
		log, err := Read(strings.NewReader(string(whole) + tail))
		if err != nil || len(log.Steps) != 3 || log.Good != int64(len(whole)) || log.Torn != int64(len(tail)) {
			t.Errorf("%+v, %v, want three steps and %d torn bytes", log, err, len(tail))
		}
	}
}

func TestUnknownActionsAndFieldsAreKept(t *testing.T) {
	lines := strings.SplitAfter(string(threeLines(t)), "\n")
	odd := `{"step":2,"action":"from_the_future","timestamp":"2026-03-01T00:00:00Z","decision":"d","extra":{"n":[1,2]}}`
	bare := func(line string) []byte {
		body, _, _ := durable.CheckLine([]byte(strings.TrimSuffix(line, "\n")))
		return append(body, "}\n"...)
	}
	one, sum := durable.SealLine(bare(lines[0]), lineTag, "")
	two, sum := durable.SealLine([]byte(odd+"\n"), lineTag, sum)
	three, _ := durable.SealLine(bare(lines[2]), lineTag, sum)
	log, err := Read(bytes.NewReader(slices.Concat(one, two, three)))
	if err != nil || len(log.Steps) != 3 {
		t.Fatalf("%+v, %v", log, err)
	}
	u, ok := log.Steps[1].(*Unknown)
	if !ok || string(u.Raw) != odd || u.Action != "from_the_future" || u.Decision != "d" {
		t.Errorf("read as %T %+v", log.Steps[1], log.Steps[1])
	}
	if again, err := durable.EncodeJSON(u, ""); err != nil || string(again) != odd+"\n" {
		t.Errorf("encoded again as %s, %v", again, err)
	}
	if refs := Refs(u); refs != nil {
		t.Errorf("an unknown step needs %v", refs)
	}
	newer := `{"step":1,"action":"iteration_start","timestamp":"2026-03-01T00:00:00Z","decision":"d","iteration":4,"novel":true}` + "\n"
	log, err = Read(strings.NewReader(newer))
	if err != nil || log.Steps[0].(*Iteration).Iteration != 4 {
		t.Errorf("a step with a new field: %+v, %v", log, err)
	}
}

func TestAReaderThatFailsIsNotATornLine(t *testing.T) {
	bad := errors.New("bad sector")
	_, err := Read(io.MultiReader(bytes.NewReader(threeLines(t)), iotest.ErrReader(bad)))
	if !errors.Is(err, bad) || marchwarden.CodeOf(err) != marchwarden.CodeUnavailable {
		t.Errorf("Read = %v, want the reader's error and CodeUnavailable", err)
	}
	if log, err := Read(iotest.OneByteReader(bytes.NewReader(threeLines(t)))); err != nil || len(log.Steps) != 3 {
		t.Errorf("byte by byte: %+v, %v", log, err)
	}
}

func FuzzRead(f *testing.F) {
	whole := threeLines(f)
	f.Add(whole)
	f.Add(whole[:len(whole)-7])
	f.Add([]byte(`{"step":1,"action":"from_the_future","timestamp":"2026-03-01T00:00:00+01:00","decision":"d","x":"\ud800"}` + "\n"))
	f.Add([]byte(`{"step":1,"action":"start","timestamp":"2026-03-01T00:00:00Z","decision":"d","format":1,"request":{"question":"q","constraints":{"max_sources":1}},"trace_id":"0198C0DE-7A3B-7C11-9D55-3F2F6F1C9A10"}` + "\n"))
	f.Add([]byte("\n\n"))
	f.Add([]byte("{}\n{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		log, err := Read(bytes.NewReader(data))
		if err != nil {
			if code := marchwarden.CodeOf(err); log == nil || code != marchwarden.CodeCorrupt && code != marchwarden.CodeUnsupported {
				t.Fatalf("%v, %v", log, err)
			}
			return
		}
		if log.Good+log.Torn != int64(len(data)) {
			t.Fatalf("Good %d and Torn %d of %d bytes", log.Good, log.Torn, len(data))
		}
		first := encodeAll(t, log)
		again, err := Read(bytes.NewReader(first))
		if err != nil || again.Torn != 0 || len(again.Steps) != len(log.Steps) {
			t.Fatalf("encoded again it reads as %+v, %v:\n%s", again, err, first)
		}
		if second := encodeAll(t, again); !bytes.Equal(first, second) {
			t.Fatalf("not stable:\n%s\n%s", first, second)
		}
		for _, s := range log.Steps {
			Refs(s)
		}
	})
}

func encodeAll(t *testing.T, log *Log) []byte {
	t.Helper()
	var all []byte
	sum := ""
	for _, s := range log.Steps {
		line, err := durable.EncodeJSON(s, "")
		if err != nil {
			t.Fatalf("step %d: %v", s.Header().Step, err)
		}
		if !json.Valid(line) || bytes.Count(line, []byte("\n")) != 1 {
			t.Fatalf("step %d is encoded as %q", s.Header().Step, line)
		}
		if log.sums {
			line, sum = durable.SealLine(line, lineTag, sum)
		}
		all = append(all, line...)
	}
	return all
}
