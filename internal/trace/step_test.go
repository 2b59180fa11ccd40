package trace

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// source is what the package's own files declare: the step types, by the struct
// types that embed Head, and the actions, by the constants of type Action.
type source struct {
	types   []string
	actions []Action
}

func parseSource(t *testing.T) source {
	t.Helper()
	var src source
	names, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if !strings.HasSuffix(n.Name(), ".go") || strings.HasSuffix(n.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), n.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if embedsHead(n.Type) {
					src.types = append(src.types, n.Name.Name)
				}
			case *ast.ValueSpec:
				if id, ok := n.Type.(*ast.Ident); ok && id.Name == "Action" && len(n.Values) == 1 {
					text, err := strconv.Unquote(n.Values[0].(*ast.BasicLit).Value)
					if err != nil {
						t.Fatal(err)
					}
					src.actions = append(src.actions, Action(text))
				}
			}
			return true
		})
	}
	return src
}

func embedsHead(typ ast.Expr) bool {
	s, ok := typ.(*ast.StructType)
	return ok && slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool {
		id, ok := f.Type.(*ast.Ident)
		return ok && len(f.Names) == 0 && id.Name == "Head"
	})
}

// everyStep is one step of each action, all fields filled in.
func everyStep(t *testing.T) []Step {
	t.Helper()
	var steps []Step
	for _, a := range parseSource(t).actions {
		s := newStep(a)
		if s == nil {
			t.Fatalf("newStep does not know the action %q: add its type to the list there", a)
		}
		fill(t, reflect.ValueOf(s).Elem(), 1)
		if start, ok := s.(*Start); ok {
			start.Format, start.Extended, start.Lengthened, start.Worked = Format, nil, nil, 0
		}
		steps = append(steps, s)
	}
	return steps
}

func TestNewStepKnowsEveryTypeAndAction(t *testing.T) {
	src := parseSource(t)
	made := []string{"Unknown"}
	for _, a := range src.actions {
		s := newStep(a)
		if s == nil {
			t.Errorf("newStep does not know the action %q", a)
			continue
		}
		made = append(made, reflect.TypeOf(s).Elem().Name())
	}
	slices.Sort(made)
	slices.Sort(src.types)
	if diff := cmp.Diff(src.types, made); diff != "" {
		t.Errorf("the step types of the package and those that newStep makes; add what is missing to kinds (-declared +made):\n%s", diff)
	}
	if newStep("no such action") != nil {
		t.Error("newStep makes a step of an action that does not exist")
	}
}

// The contract's list, which later versions may only add to.
func TestTheContractsActionsAreThere(t *testing.T) {
	have := parseSource(t).actions
	for _, want := range []Action{"start", "iteration_start", "web_search", "web_search_complete", "fetch_url", "fetch_url_complete", "agent_message",
		"budget_exhausted", "synthesis_start", "synthesis_complete", "synthesis_error", "verify", "complete"} {
		if !slices.Contains(have, want) {
			t.Errorf("no action %q", want)
		}
	}
}

// fill sets everything below v to values that are not zero and differ.
func fill(t *testing.T, v reflect.Value, seed int) {
	t.Helper()
	switch v.Type() {
	case reflect.TypeFor[blob.Ref]():
		v.Set(reflect.ValueOf(blob.Of([]byte(strconv.Itoa(seed)))))
		return
	case reflect.TypeFor[json.RawMessage]():
		v.Set(reflect.ValueOf(json.RawMessage(`{"n":` + strconv.Itoa(seed) + `}`)))
		return
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 3, 1, 9, 30, seed, 123456789, time.UTC)))
		return
	case reflect.TypeFor[marchwarden.TraceID]():
		v.Set(reflect.ValueOf(testID(t, seed)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), seed*7+i+1)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), seed)
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		fill(t, value, seed*7+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key "+strconv.Itoa(seed)), value)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0), seed*7+1)
		fill(t, v.Index(1), seed*7+2)
	case reflect.String:
		v.SetString("text <" + strconv.Itoa(seed) + "> & “é”\n")
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(seed))
	case reflect.Float64:
		v.SetFloat(float64(seed) + 0.25)
	case reflect.Bool:
		v.SetBool(true)
	default:
		t.Fatalf("a step has a field of type %s, which this test cannot fill", v.Type())
	}
}

func TestEveryStepComesBack(t *testing.T) {
	dir := newDir(t)
	id := testID(t, 1)
	w, err := dir.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	steps := everyStep(t)
	for _, s := range steps {
		if err := w.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	log, err := dir.Load(id)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps { // a start that was read knows how its run went on
		if r, ok := s.(*Resume); ok {
			steps[0].(*Start).Resumed(r)
		}
	}
	if diff := cmp.Diff(steps, log.Steps, cmpopts.EquateComparable(blob.Ref{}, marchwarden.TraceID{}, ActionID{})); diff != "" {
		t.Errorf("steps changed on the way (-written +read):\n%s", diff)
	}
	for i, s := range log.Steps {
		h := s.Header()
		if h.Step != i+1 || h.Action != actions[reflect.TypeOf(s)] || !h.Timestamp.Equal(testTime) {
			t.Errorf("step %d has the head %+v", i+1, h)
		}
	}
	if log.Torn != 0 || log.Good != int64(len(readAll(t, dir, id))) {
		t.Errorf("Good %d, Torn %d of %d bytes", log.Good, log.Torn, len(readAll(t, dir, id)))
	}
}

// The names are the contract's: people read them with jq.
func TestLinesHaveTheContractsFields(t *testing.T) {
	dir := newDir(t)
	id := testID(t, 1)
	w, err := dir.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	steps := everyStep(t)
	for _, s := range steps {
		if err := w.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	own := map[Action][]string{
		ActionStart:          {"trace_id", "request", "limits", "format"},
		ActionFetch:          {"url"},
		ActionFetchComplete:  {"url", "content_hash", "content_length", "action_id", "output_id"},
		ActionSearchComplete: {"query", "hits", "action_id", "output_id"},
		ActionModel:          {"prompt", "prompt_hash"},
		ActionModelComplete:  {"prompt", "prompt_hash", "tokens_in", "tokens_out", "reply_hash", "action_id", "output_id"},
		ActionComplete:       {"result", "tokens_used"},
	}
	lines := strings.SplitAfter(string(readAll(t, dir, id)), "\n")
	if last := len(lines) - 1; lines[last] != "" || last != len(steps) {
		t.Fatalf("%d lines for %d steps", last, len(steps))
	}
	for i, line := range lines[:len(steps)] {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		action := actions[reflect.TypeOf(steps[i])]
		if m["step"] != float64(i+1) || m["action"] != string(action) || m["decision"] == "" || m["decision"] == nil {
			t.Errorf("line %d: step %v, action %v, decision %v", i+1, m["step"], m["action"], m["decision"])
		}
		stamp, _ := m["timestamp"].(string)
		if at, err := time.Parse(time.RFC3339Nano, stamp); err != nil || !strings.HasSuffix(stamp, "Z") || !at.Equal(testTime) {
			t.Errorf("line %d: timestamp %q, want RFC 3339 in UTC", i+1, stamp)
		}
		for _, name := range own[action] {
			v, ok := m[name]
			if !ok {
				t.Errorf("a %s line lacks %s: %s", action, name, line)
			}
			if s, _ := v.(string); (strings.HasSuffix(name, "_hash") || strings.HasSuffix(name, "_id") && name != "trace_id") && (len(s) != 71 || !strings.HasPrefix(s, "sha256:")) {
				t.Errorf("a %s line has %s %q, want sha256: and 64 hex digits", action, name, s)
			}
		}
		if strings.Contains(line, `\u003c`) {
			t.Errorf("line %d is escaped for HTML: %s", i+1, line)
		}
	}
}

// Fields that the contract requires are there when they are zero, too.
func TestRequiredFieldsAreNeverOmitted(t *testing.T) {
	for action, names := range map[Action][]string{
		ActionFetchComplete: {"url", "content_hash", "content_length", "output_id", "elapsed_ms"},
		ActionModelComplete: {"prompt", "prompt_hash", "reply_hash", "tokens_in", "tokens_out"},
		ActionEmbedComplete: {"model", "tokens_in", "action_id", "output_id"},
		ActionMessage:       {"step", "action", "timestamp", "decision"},
	} {
		line, err := durable.EncodeJSON(newStep(action), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if !strings.Contains(string(line), `"`+name+`":`) {
				t.Errorf("an empty %s lacks %s: %s", action, name, line)
			}
		}
	}
}

func TestRefsAreEveryBlobThatAStepNeeds(t *testing.T) {
	ref := func(s string) blob.Ref { return blob.Of([]byte(s)) }
	for _, c := range []struct {
		step Step
		want []blob.Ref
	}{
		{&Message{}, nil},
		{&FetchComplete{}, nil},
		{&FetchComplete{Effect: Effect{OutputID: ref("o")}, RawHash: ref("r"), ContentHash: ref("c")}, []blob.Ref{ref("o"), ref("r"), ref("c")}},
		{&SearchComplete{Effect: Effect{OutputID: ref("o"), ActionID: ActionID{ref("a")}}}, []blob.Ref{ref("o")}},
		{&ModelComplete{Effect: Effect{OutputID: ref("o")}, PromptHash: ref("p"), ReplyHash: ref("t")}, []blob.Ref{ref("o")}},
		{&EmbedComplete{Effect: Effect{OutputID: ref("o")}}, []blob.Ref{ref("o")}},
		{&Checkpoint{Effect: Effect{OutputID: ref("o")}}, []blob.Ref{ref("o")}},
		{&Complete{Result: ref("x")}, []blob.Ref{ref("x")}},
	} {
		if diff := cmp.Diff(c.want, Refs(c.step), cmpopts.EquateComparable(blob.Ref{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("Refs of %T (-want +got):\n%s", c.step, diff)
		}
	}
}

func TestLogStartAndComplete(t *testing.T) {
	if _, err := (&Log{}).Start(); marchwarden.CodeOf(err) != marchwarden.CodeCorrupt {
		t.Errorf("an empty log has a start: %v", err)
	}
	if _, err := (&Log{Steps: []Step{&Message{}, &Start{}}}).Start(); marchwarden.CodeOf(err) != marchwarden.CodeCorrupt {
		t.Errorf("a log that begins otherwise has a start: %v", err)
	}
	start, done := &Start{}, &Complete{}
	log := &Log{Steps: []Step{start, &Message{}, done, &Message{}}}
	if got, err := log.Start(); got != start || err != nil {
		t.Errorf("Start = %v, %v", got, err)
	}
	if log.Complete() != done || (&Log{Steps: []Step{start}}).Complete() != nil {
		t.Error("Complete finds the wrong step")
	}
}
