package evidence

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// pageSources is how many sources a question is asked of.
const pageSources = 10

// task is a question, the sources that a search brought, and where in them the
// evidence for its answer stands.
type task struct {
	question string
	set      *Set
	gold     []gold
}

// gold is a piece of evidence: a span of a source's text.
type gold struct {
	source int // from 0
	span   marchwarden.Span
}

// squadTasks asks of an article among nine others; the evidence is the sentence
// that holds the answer.
func squadTasks(t *testing.T) []task {
	articles := datatest.Read(t)
	texts := make([]string, len(articles))
	starts := make([][]int, len(articles)) // of each paragraph
	for i, a := range articles {
		for _, p := range a.Paragraphs {
			starts[i] = append(starts[i], len(texts[i]))
			texts[i] += p.Context + "\n\n"
		}
	}
	var tasks []task
	for i, a := range articles {
		set := &Set{}
		for k := range pageSources {
			n := (i + k) % len(articles)
			set.Add(page(articles[n].Title, articles[n].Name(), texts[n]), texts[n])
		}
		for k, p := range a.Paragraphs {
			for _, q := range p.QAs {
				if q.Impossible || order(q.Question)%10 != 0 {
					continue
				}
				at := strings.Index(p.Context, q.Answers[0])
				if at < 0 {
					continue
				}
				around := sentenceAt(p.Context, at)
				tasks = append(tasks, task{q.Question, set, []gold{{0, marchwarden.Span{Start: starts[i][k] + around.Start, End: starts[i][k] + around.End}}}})
			}
		}
	}
	return tasks
}

// sentenceAt is the sentence of a text that holds the byte at an offset.
func sentenceAt(text string, at int) marchwarden.Span {
	for _, p := range lexicon.Paragraphs(text) {
		for _, s := range p.Sentences {
			if at >= s.Start && at < s.End {
				return marchwarden.Span(s)
			}
		}
	}
	return marchwarden.Span{Start: at, End: at + 1}
}

// block is a paragraph with a title; its evidence is spans of its text.
type block struct {
	title, text string
	gold        []marchwarden.Span
}

// name tells blocks apart: the same paragraph comes with several questions.
func (b block) name() string { return cmp.Or(b.title, b.text) }

// pages spreads the blocks of one question over ten pages, each filled with
// blocks of other questions to a fixed number, in an order of chance. A page
// looks like an article with sections.
func pages(question string, own, pool []block, perPage int) task {
	taken := map[string]bool{}
	for _, b := range own {
		taken[b.name()] = true
	}
	pool = shuffled(pool, question)
	sources := make([][]block, pageSources)
	for i, b := range own {
		sources[i%pageSources] = append(sources[i%pageSources], b)
	}
	next := 0
	for i := range sources {
		for ; len(sources[i]) < perPage && next < len(pool); next++ {
			b := pool[next]
			if !taken[b.name()] {
				taken[b.name()] = true
				b.gold = nil
				sources[i] = append(sources[i], b)
			}
		}
		sources[i] = shuffled(sources[i], question+" page")
	}
	tk := task{question: question}
	var texts []string
	for i, blocks := range sources {
		var b strings.Builder
		for _, bl := range blocks {
			if bl.title != "" {
				b.WriteString("## " + bl.title + "\n\n")
			}
			for _, g := range bl.gold {
				tk.gold = append(tk.gold, gold{i, marchwarden.Span{Start: b.Len() + g.Start, End: b.Len() + g.End}})
			}
			b.WriteString(bl.text + "\n\n")
		}
		texts = append(texts, b.String())
	}
	tk.set = setOf(texts)
	return tk
}

// sets keeps the sets that were made, by their texts.
var sets = map[uint64]*Set{}

func setOf(texts []string) *Set {
	name := order(texts...)
	if sets[name] == nil {
		sets[name] = &Set{}
		for i, text := range texts {
			sets[name].Add(page(fmt.Sprint(i), "", text), text)
		}
	}
	return sets[name]
}

// shuffled puts blocks into an order of chance.
func shuffled(blocks []block, seed string) []block {
	type placed struct {
		block
		at uint64
	}
	all := make([]placed, len(blocks))
	for i, b := range blocks {
		all[i] = placed{b, order(seed, b.name())}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.at, b.at) })
	out := make([]block, len(blocks))
	for i, p := range all {
		out[i] = p.block
	}
	return out
}

// trimmed is a span without the white space at its ends.
func trimmed(text string, s marchwarden.Span) marchwarden.Span {
	part := text[s.Start:s.End]
	s.Start += len(part) - len(strings.TrimLeft(part, " \n\t"))
	s.End -= len(part) - len(strings.TrimRight(part, " \n\t"))
	return s
}

// find is where a part stands in a text, if it does.
func find(text, part string) []marchwarden.Span {
	part = strings.TrimSpace(part)
	at := strings.Index(text, part)
	if at < 0 || part == "" {
		return nil
	}
	return []marchwarden.Span{{Start: at, End: at + len(part)}}
}

// clapTasks has for evidence the sentences that annotators selected.
func clapTasks(t *testing.T) []task {
	type row struct {
		Input      string
		Answerable bool
		Passages   []struct {
			Title     string
			Sentences []string
		}
		Output []struct {
			Selected []string `json:"selected_sentences"`
		}
	}
	rows := datatest.Rows[row](t, "qa/clapnq")
	blocks := make([]block, len(rows))
	for i, r := range rows {
		blocks[i] = block{title: r.Passages[0].Title, text: strings.Join(r.Passages[0].Sentences, " ")}
		if len(r.Output) > 0 {
			for _, s := range r.Output[0].Selected {
				blocks[i].gold = append(blocks[i].gold, find(blocks[i].text, s)...)
			}
		}
	}
	var tasks []task
	for i, r := range rows {
		if r.Answerable && order(r.Input)%2 == 0 {
			tasks = append(tasks, pages(r.Input, blocks[i:i+1], blocks, 11))
		}
	}
	return tasks
}

// hotpotTasks has for evidence the supporting sentences of two paragraphs.
func hotpotTasks(t *testing.T) []task {
	type row struct {
		Question string
		Context  [][]json.RawMessage
		Facts    [][]json.RawMessage `json:"supporting_facts"`
	}
	rows := datatest.Rows[row](t, "multidoc/hotpot100")
	var pool []block
	own := make([][]block, len(rows))
	for i, r := range rows {
		for _, c := range r.Context {
			var title string
			var sentences []string
			decode(t, c[0], &title)
			decode(t, c[1], &sentences)
			b := block{title: title, text: strings.TrimSpace(strings.Join(sentences, ""))}
			for _, f := range r.Facts {
				var of string
				var n int
				decode(t, f[0], &of)
				decode(t, f[1], &n)
				if of == title && n < len(sentences) {
					b.gold = append(b.gold, find(b.text, sentences[n])...)
				}
			}
			own[i] = append(own[i], b)
		}
		pool = append(pool, own[i]...)
	}
	var tasks []task
	for i, r := range rows {
		tasks = append(tasks, pages(r.Question, own[i], pool, 20))
	}
	return tasks
}

func decode(t *testing.T, raw json.RawMessage, v any) {
	t.Helper()
	if err := json.Unmarshal(raw, v); err != nil {
		t.Fatal(err)
	}
}

// musiqueTasks has for evidence two to four supporting paragraphs: the whole of
// each, or of each the sentence with the answer to its step.
func musiqueTasks(t *testing.T) (paragraphs, sentences []task) {
	type row struct {
		Question   string
		Paragraphs []struct {
			Title      string
			Text       string `json:"paragraph_text"`
			Supporting bool   `json:"is_supporting"`
		}
		Steps []struct {
			Answer string
			At     int `json:"paragraph_support_idx"`
		} `json:"question_decomposition"`
	}
	rows := datatest.Rows[row](t, "multidoc/musique100-hippo")
	var pool []block
	whole, parts := make([][]block, len(rows)), make([][]block, len(rows))
	for i, r := range rows {
		for k, p := range r.Paragraphs {
			b := block{title: p.Title, text: strings.TrimSpace(p.Text)}
			pool = append(pool, b)
			part := b
			for _, s := range r.Steps {
				if at := strings.Index(b.text, s.Answer); s.At == k && at >= 0 {
					part.gold = append(part.gold, sentenceAt(b.text, at))
				}
			}
			parts[i] = append(parts[i], part)
			if p.Supporting {
				b.gold = []marchwarden.Span{{Start: 0, End: len(b.text)}}
			}
			whole[i] = append(whole[i], b)
		}
	}
	for i, r := range rows {
		paragraphs = append(paragraphs, pages(r.Question, whole[i], pool, 27))
		sentences = append(sentences, pages(r.Question, parts[i], pool, 27))
	}
	return paragraphs, sentences
}

// pubmedTasks has for evidence the results of the study that a question is the
// title of; the title itself is not shown.
func pubmedTasks(t *testing.T) []task {
	type row struct {
		Question string   `json:"QUESTION"`
		Contexts []string `json:"CONTEXTS"`
		Labels   []string `json:"LABELS"`
	}
	rows := datatest.Rows[row](t, "qa/pubmedqa")
	blocks := make([]block, len(rows))
	for i, r := range rows {
		for k, c := range r.Contexts {
			if k > 0 {
				blocks[i].text += "\n\n"
			}
			if k < len(r.Labels) && strings.HasPrefix(r.Labels[k], "RESULT") {
				at := len(blocks[i].text)
				blocks[i].gold = append(blocks[i].gold, trimmed(blocks[i].text+c, marchwarden.Span{Start: at, End: at + len(c)}))
			}
			blocks[i].text += c
		}
	}
	var tasks []task
	for i, r := range rows {
		if len(blocks[i].gold) > 0 && order(r.Question)%7 == 0 {
			tasks = append(tasks, pages(r.Question, blocks[i:i+1], blocks, 9))
		}
	}
	return tasks
}

// excerptTasks asks of eleven real documents, a speech and ten long articles; the
// evidence is the excerpts that annotators marked. No weight was chosen by it.
func excerptTasks(t *testing.T) []task {
	type row struct {
		Question   string
		Corpus     string `json:"corpus_id"`
		References []struct {
			Content string
		}
	}
	files := untar(t, "excerpts/chunking-eval-corpora.tar.gz")
	texts := []string{string(files["state_of_the_union.md"])}
	for line := range strings.Lines(string(files["wikitexts.md"])) {
		title := strings.HasPrefix(line, " = ") && !strings.HasPrefix(line, " = =") && !strings.Contains(line, ";") // no line of a table's legend
		if title {
			texts = append(texts, "")
		}
		texts[len(texts)-1] += line
	}
	set := setOf(texts)
	var tasks []task
	for _, r := range datatest.Rows[row](t, "excerpts/chunking-eval-questions") {
		tk := task{question: r.Question, set: set}
		for _, ref := range r.References {
			for i, text := range texts {
				for _, span := range find(text, ref.Content) {
					tk.gold = append(tk.gold, gold{i, span})
				}
			}
		}
		tasks = append(tasks, tk)
	}
	return tasks
}
