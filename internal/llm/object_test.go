package llm_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

func TestObject(t *testing.T) {
	for _, tt := range []struct {
		name, in, want string // want "" stands for none
	}{
		{"object", `{"a":1}`, `{"a":1}`},
		{"untouched, space and all", " {\"a\" : [1, 2]}\n", " {\"a\" : [1, 2]}\n"},
		{"duplicate keys stay", `{"a":1,"a":2}`, `{"a":1,"a":2}`},
		{"array", `[1,"x"]`, `[1,"x"]`},
		{"empty", ``, ``},
		{"no JSON", `I could not find anything.`, ``},
		{"a scalar is no object", `"text"`, ``},
		{"words around", `Here it is: {"a": 1} Anything else?`, `{"a": 1}`},
		{"fence", "```json\n{\"a\": 1}\n```", `{"a": 1}`},
		{"fence without end", "```json\n{\"a\": 1}", `{"a": 1}`},
		{"fence inside a string", "Sure:\n{\"a\": \"```\"}", "{\"a\": \"```\"}"},
		{"think block", `<think>{"a":"draft, and a long one"}</think>{"a":1}`, `{"a":1}`},
		{"two think blocks", `<think>x</think> <think>[1,2,3,4,5,6]</think> {"a":1}`, `{"a":1}`},
		{"stray closing tag", `So {"a":"draft, and a long one"} it is. </think> {"a":1}`, `{"a":1}`},
		{"stray closing tag after half an object", `maybe {"a": "dr </think> {"a":1}`, `{"a":1}`},
		{"unclosed think at the end", `{"a":1} <think>was that right? {"a":2222}`, `{"a":1}`},
		{"only an unclosed think", `<think>perhaps {"a":1}`, ``},
		{"a tag inside a string", `{"a":"</think>","b":2,}`, `{"a":"</think>","b":2}`},
		{"trailing commas", `{"a":[1,2,],"b":{"c":1,},}`, `{"a":[1,2],"b":{"c":1}}`},
		{"two commas are broken", `{"a":[1,,2]}`, ``},
		{"line end in a string", "{\"a\":\"x\ny\tz\"}", `{"a":"x\u000ay\u0009z"}`},
		{"reference numbers before it", `As [1] and [2] say: {"a":1}`, `{"a":1}`},
		{"the longer of two", `{"a":1} or better {"a":1,"b":2}`, `{"a":1,"b":2}`},
		{"the first of equals", `{"a":1} {"a":2}`, `{"a":1}`},
		{"words in brackets", `{note} [sic] {"a":1}`, `{"a":1}`},
		{"a pattern before it", `The form is {"a": [...]}. So: {"a": [7]}`, `{"a": [7]}`},
		{"single quotes are not guessed", `{'a': 1}`, ``},
		{"nor in a value", `{"a": 'x', "b": {"c": 1}}`, ``},
		{"no piece of a broken object", `{"claims":[{"id":1},{"id":2,"t":"\d"},{"id":3}]}`, ``},
		{"a whole value after a broken one", `{"claims":[{"id":1} {"id":2}]} {"z":1}`, `{"z":1}`},
		{"comments are not guessed", "{\"a\": 1, // one\n\"b\": 2}", ``},
		{"bare words are not guessed", `{"a": None}`, ``},
		{"cut in an element", `{"q":"x","claims":[{"a":1,"b":2},{"a":3,"b":"unfin`, `{"q":"x","claims":[{"a":1,"b":2}]}`},
		{"cut in a nested list of an element", `[{"a":[1,2]},{"a":[3,4`, `[{"a":[1,2]}]`},
		{"cut in the first element", `{"q":"x","claims":[{"a":1`, `{"q":"x"}`},
		{"cut after a comma", `{"a":1,`, `{"a":1}`},
		{"cut after a key", `{"a":1,"b`, `{"a":1}`},
		{"cut after a colon", `{"a":1,"b":`, `{"a":1}`},
		{"cut in a number", `{"a":1,"b":23`, `{"a":1}`},
		{"cut after a number", `{"a":1,"b":23 `, `{"a":1,"b":23}`},
		{"cut in a word", `[true,fal`, `[true]`},
		{"cut after a word", `[null,true`, `[null,true]`},
		{"cut in an escape", `["a","b\u00`, `["a"]`},
		{"cut in an object in an object", `{"a":{"b":1,"c":"x`, `{"a":{"b":1}}`},
		{"cut before anything whole", `{"a":"unfin`, ``},
		{"cut at an opening bracket", `as shown in [`, ``},
		{"cut in a fence", "```json\n{\"a\":1,\"b\":\n```\nSorry.", `{"a":1}`},
		{"cut after trailing commas", `{"a":[1,],"b":[2,`, `{"a":[1],"b":[2]}`},
		{"too deep to repair", `x` + strings.Repeat("[", 300) + strings.Repeat("]", 300), ``},
		{"as deep as can be", `x` + strings.Repeat("[", 200) + strings.Repeat("]", 200), strings.Repeat("[", 200) + strings.Repeat("]", 200)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := llm.Object(tt.in)
			if ok != (tt.want != "") || string(got) != tt.want {
				t.Errorf("Object(%q) = %q, %v; want %q", tt.in, got, ok, tt.want)
			}
			if ok && !json.Valid(got) {
				t.Errorf("Object(%q) = %q, which is no JSON", tt.in, got)
			}
		})
	}
}

// Hostile texts take time in proportion to their length: one of 256 KiB takes about as long as 64 of 4 KiB. It would
// take 64 times as long if the work were quadratic.
func TestObjectIsQuick(t *testing.T) {
	for name, part := range map[string]string{
		"brackets":       "[",
		"braces":         `{"a":`,
		"quotes":         `["`,
		"nested strings": `["[\"`,
		"lists":          `[1,`,
		"objects":        `{"a":1} `,
		"fences":         "```{",
		"tags":           "<think></think>",
		"closing tags":   "{</think>",
		"odd commas":     `,"[,"[`,
	} {
		t.Run(name, func(t *testing.T) {
			const all = 256 << 10
			quickest := func(texts int) time.Duration {
				text := "x" + strings.Repeat(part, all/texts/len(part))
				best := time.Duration(math.MaxInt64)
				for range 3 {
					start := time.Now()
					for range texts {
						llm.WithoutThinking(text + "<think>")
						if got, ok := llm.Object(text); ok && !json.Valid(got) {
							t.Error("no JSON came back")
						}
					}
					best = min(best, time.Since(start))
				}
				return best
			}
			if many, one := quickest(64), quickest(1); one > 16*many {
				t.Errorf("64 texts take %v, and one as long as all %v", many, one)
			}
		})
	}
}

// Models without tool use write their calls as text.
func TestCallsIn(t *testing.T) {
	for text, want := range map[string]string{
		"I will search.\n```json\n{\"calls\":[{\"tool\":\"web_search\",\"input\":{\"query\":\"x\"}},{\"tool\":\"other\"}]}\n```":                                                 `web_search{"query":"x"} other{}`,
		"<tool_call>\n{\"name\":\"web_search\",\"arguments\":{\"query\":\"x\"}}\n</tool_call>\n<tool_call>{\"name\":\"web_search\",\"arguments\":{\"query\":\"y\"}}</tool_call>": `web_search{"query":"x"} web_search{"query":"y"}`,
		`[{"tool":"web_search","input":{"query":"x"}}]`: `web_search{"query":"x"}`,
		`{"name":"Ada"}`: "",
		"DONE":           "",
	} {
		var got []string
		for _, c := range llm.CallsIn(text) {
			got = append(got, c.Name+string(c.Input))
		}
		if calls := strings.Join(got, " "); calls != want {
			t.Errorf("%s: %q, want %q", text, calls, want)
		}
	}
}

func TestWithoutThinking(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"plain", "plain"},
		{" plain ", " plain "},
		{"<think>a</think>\n\nb", "b"},
		{"a <think>b</think> c <think>d</think>e", "a  c e"},
		{"a</think>b", "b"},
		{"a <think>b", "a"},
		{"<think>b", ""},
		{"<think>a</think>b</think>c", "c"},
		{"so {\"a\":1} it is</think>b", "b"},
		{"so {\"a\": \"it is</think>b", "b"},
		{"so {\"a\": \"it is</think>b {\"a\":1}", "b {\"a\":1}"},
		{"```json\n{\"a\":\"</think>\",\"b\":\"<think>\"}\n```", "```json\n{\"a\":\"</think>\",\"b\":\"<think>\"}\n```"},
		{"Here: {\"a\":[\"<think>\",\"b", "Here: {\"a\":[\"<think>\",\"b"},
		{`{"a":"<think>b</think>"}`, `{"a":"<think>b</think>"}`},
	} {
		if got := llm.WithoutThinking(tt.in); got != tt.want {
			t.Errorf("WithoutThinking(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

// TestObjectMakesNothingUp cuts values anywhere: what is kept was there, and list
// elements are whole.
func TestObjectMakesNothingUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var value any = map[string]any{"first": rapid.String().Draw(t, "first"), "rest": anyJSON(t, 4)}
		if rapid.Bool().Draw(t, "list") {
			value = []any{anyJSON(t, 4), anyJSON(t, 4), value}
		}
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		var full any
		if err := json.Unmarshal(raw, &full); err != nil {
			t.Fatal(err)
		}
		for n := range raw {
			got, ok := llm.Object(string(raw[:n]))
			if !ok {
				continue
			}
			var kept any
			if err := json.Unmarshal(got, &kept); err != nil || !partOf(kept, full) {
				t.Fatalf("%s was made of %s: %v", got, raw[:n], err)
			}
		}
	})
}

func anyJSON(t *rapid.T, depth int) any {
	switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
	case kind == 0 || depth == 0:
		return rapid.String().Draw(t, "string")
	case kind == 1:
		return rapid.Int().Draw(t, "int")
	case kind == 2:
		return rapid.SampledFrom([]any{true, false, nil, 1.5e-9}).Draw(t, "word")
	case kind == 3:
		m := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "fields") {
			m[rapid.String().Draw(t, "key")] = anyJSON(t, depth-1)
		}
		return m
	default:
		l := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			l = append(l, anyJSON(t, depth-1))
		}
		return l
	}
}

// partOf tells whether got is full with whole items left out: fields of objects,
// and the last elements of a list.
func partOf(got, full any) bool {
	switch got := got.(type) {
	case map[string]any:
		full, ok := full.(map[string]any)
		for key, value := range got {
			other, has := full[key]
			ok = ok && has && partOf(value, other)
		}
		return ok
	case []any:
		full, ok := full.([]any)
		return ok && len(got) <= len(full) && cmp.Equal(got, full[:len(got)])
	default:
		return got == full
	}
}

func FuzzObject(f *testing.F) {
	for _, s := range []string{
		`{"a":1}`, ` [1, 2,] `, "```json\n{\"a\":\"b\n\"}", `<think>{</think>[{"a":1},{"b`, `{"a":{"b":[1,2,{"c":`, `["\u12`, `[-`, `{"a":1}}`, `{"a" 'x'} [[1]`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if said := llm.WithoutThinking(text); len(said) > len(text) {
			t.Fatalf("WithoutThinking(%q) = %q", text, said)
		}
		got, ok := llm.Object(text)
		again, okAgain := llm.Object(text)
		if ok != okAgain || string(got) != string(again) {
			t.Fatalf("Object(%q) differs from one time to the next", text)
		}
		trimmed := strings.TrimLeft(text, " \t\r\n")
		if json.Valid([]byte(text)) && (trimmed[0] == '{' || trimmed[0] == '[') {
			if string(got) != text {
				t.Fatalf("Object(%q) = %q, but it is JSON as it stands", text, got)
			}
			return
		}
		if !ok {
			if got != nil {
				t.Fatalf("Object(%q) = %q and says there is none", text, got)
			}
			return
		}
		if !json.Valid(got) || got[0] != '{' && got[0] != '[' {
			t.Fatalf("Object(%q) = %q, which is no object or array", text, got)
		}
	})
}

// FuzzBegun cuts a reply anywhere: what stands whole in the piece stands so in the whole, in the same place.
func FuzzBegun(f *testing.F) {
	f.Add(`{"claims":[{"text":"a}","passages":["S1.1"]},{"text":"b","passages":[]}],"gaps":[]}`, 0, 30)
	f.Add(`{"blocks":[{"type":"list","claims":[{"text":"a"},{"text":"b\"]}"}]},{"type":"paragraph","claims":[{"text":"c"}]}]}`, 1, 60)
	f.Add("<think>{</think>```json\n[{\"a\":[1,{\"b\":[", 2, 24)
	f.Fuzz(func(t *testing.T, text string, deep, at int) {
		deep, at = min(max(deep, 0), 3), min(max(at, 0), len(text))
		got, ok := llm.Begun(text[:at], deep)
		if ok && !json.Valid(got) || !ok && got != nil {
			t.Fatalf("Begun(%q, %d) = %q, %v", text[:at], deep, got, ok)
		}
		var part, whole bytes.Buffer
		if !ok || json.Compact(&whole, []byte(text)) != nil || whole.Bytes()[0] != '{' && whole.Bytes()[0] != '[' {
			return
		}
		if err := json.Compact(&part, got); err != nil || !bytes.HasPrefix(whole.Bytes(), bytes.TrimRight(part.Bytes(), "}]")) {
			t.Fatalf("of %q, Begun(%q, %d) = %s", text, text[:at], deep, got)
		}
	})
}
