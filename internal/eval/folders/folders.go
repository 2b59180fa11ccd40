// Package folders measures answers about ordinary folders on disk, asked as a user asks
// them: by 'marchwarden ask --library', with the investigator, the index and the settings
// that it works with. One folder is that of an office, which was written for this suite;
// the other is made of encyclopaedia articles. The package owns both, the questions and
// the scores. It writes and asks folders through eval.Folders alone.
//
// Half of the questions are open: their answers are there to be studied. The other half
// are held out. Nothing is tuned on them, so their answers are told to developers only if
// they ask for them.
package folders

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
)

//go:embed office questions.jsonl
var own embed.FS

// The folders, and the parts of the questions.
const (
	office    = "office"
	freshwiki = "freshwiki"
	partOpen  = "open"
	partHeld  = "held"
)

// Suites are the suites of this package.
func Suites() []eval.Suite {
	s := eval.Suite{
		Name: "folders", Title: "questions about two folders on disk, asked by the program itself: an office's papers, FreshWiki articles",
		Optional: []string{eval.FreshWiki + ".jsonl.gz"}, Own: own, Parts: []string{partOpen, partHeld}, OnDisk: true,
		Licence: "our own; CC BY-SA", Measures: "short, right and honest answers about a folder",
		Open: open,
	}
	for _, g := range groups {
		for _, name := range []string{overRefused, calibrationError, words} {
			s.Bars = append(s.Bars, eval.Bar{Metric: g.prefix + name, Smaller: true})
		}
	}
	return []eval.Suite{s}
}

// question is a row of the set.
type question struct {
	ID       string `json:"id"`
	Folder   string `json:"folder"`
	Question string `json:"question"`
	// Keys are what an answer has to say, any of them; "a && b" is both.
	Keys []string `json:"keys"`
	// Short are what the short answer has to say, any of them.
	Short []string `json:"short"`
	Kind  string   `json:"kind"`
	Part  string   `json:"part"`
	Note  string   `json:"note"` // names the document that answers
}

// The kinds of questions beside span, list and latest.
const (
	kindYes  = "yes"
	kindNo   = "no"
	kindNone = "none" // the folder does not answer it
)

func (q question) answerable() bool { return q.Kind != kindNone }

// questions reads the set.
func questions() ([]question, error) {
	data, err := own.ReadFile("questions.jsonl")
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeInternal, "read the questions")
	}
	var all []question
	for line := range strings.Lines(string(data)) {
		var q question
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			return nil, marchwarden.Wrap(err, marchwarden.CodeInternal, "read question %d", len(all)+1)
		}
		all = append(all, q)
	}
	return all, nil
}

// session is the suite with its data read. Folders are written when their first question
// is asked.
type session struct {
	env       eval.Env
	ids       []string
	questions map[string]question
	docs      map[string]eval.Docs
	dirs      map[string]func() (string, error)
	notes     []string
}

func open(ctx context.Context, env eval.Env) (eval.Session, error) {
	all, err := questions()
	if err != nil {
		return nil, err
	}
	s := &session{env: env, questions: map[string]question{}, docs: map[string]eval.Docs{}, dirs: map[string]func() (string, error){}}
	if s.docs[office], err = officeDocs(); err != nil {
		return nil, err
	}
	if env.Data.Has(eval.FreshWiki + ".jsonl.gz") {
		if s.docs[freshwiki], err = wikiDocs(env.Data); err != nil {
			return nil, err
		}
	}
	for folder, docs := range s.docs {
		s.dirs[folder] = sync.OnceValues(func() (string, error) { return env.Folders.Write(ctx, folder, docs) })
	}
	skipped := 0
	for _, q := range all {
		s.questions[q.ID] = q // also of those that are not asked: old rows are scored by them
		switch {
		case env.Part != "" && env.Part != q.Part:
		case s.docs[q.Folder] == nil:
			skipped++
		default:
			s.ids = append(s.ids, q.ID)
		}
	}
	if skipped > 0 {
		s.notes = append(s.notes, fmt.Sprintf("%d questions about the folder %s are left out: %s.jsonl.gz is not in %s", skipped, freshwiki, eval.FreshWiki, env.Data.Dir()))
	}
	return s, nil
}

func (s *session) Cases() []string { return s.ids }
func (s *session) Notes() []string { return s.notes }
func (s *session) Close() error    { return nil }

// Run asks one question.
func (s *session) Run(ctx context.Context, id string) (eval.Row, error) {
	q := s.questions[id]
	if s.env.Folders == nil {
		return eval.Row{}, marchwarden.Errorf(marchwarden.CodeUnsupported, "there is no way to ask a folder on disk")
	}
	dir, err := s.dirs[q.Folder]()
	if err != nil {
		return eval.Row{}, err
	}
	raw, err := s.env.Folders.Ask(ctx, dir, q.Question)
	if err != nil {
		return eval.Row{}, err
	}
	var r reply
	if err := json.Unmarshal(raw, &r); err != nil {
		return eval.Row{}, marchwarden.Wrap(err, marchwarden.CodeMalformed, "read the result")
	}
	for i, c := range r.Citations {
		r.Citations[i].Locator = strings.TrimLeft(strings.TrimPrefix(c.Locator, dir), `/\`)
	}
	row := eval.Row{ID: id, Values: s.values(q, r)}
	if s.env.Details.Add != nil {
		s.env.Details.Add(id, s.detail(q, r, row.Values))
	}
	return row, nil
}

// detail is a line about one case. Of a question that is held out it has the scores
// alone, unless more was asked for.
type detail struct {
	ID         string  `json:"id"`
	Part       string  `json:"part"`
	Folder     string  `json:"folder"`
	Kind       string  `json:"kind"`
	Good1      *bool   `json:"good1,omitempty"` // of questions that have an answer
	Good2      *bool   `json:"good2,omitempty"`
	Short      *bool   `json:"short,omitempty"`
	File       *bool   `json:"file,omitempty"`
	Refused    bool    `json:"refused"`
	Confidence float64 `json:"confidence"`
	*told
}

// told is what was asked and answered.
type told struct {
	Question    string       `json:"question"`
	Keys        []string     `json:"keys,omitempty"`
	Wanted      []string     `json:"wanted,omitempty"` // of the short answer
	Note        string       `json:"note,omitempty"`
	ShortAnswer *shortAnswer `json:"short_answer,omitempty"`
	Answer      string       `json:"answer"`
	Cited       []string     `json:"cited"`
}

func (s *session) detail(q question, r reply, values map[string]float64) detail {
	yes := func(name string) *bool {
		v, ok := values[name]
		if !ok {
			return nil
		}
		b := v == 1
		return &b
	}
	d := detail{
		ID: q.ID, Part: q.Part, Folder: q.Folder, Kind: q.Kind, Good1: yes(good1), Good2: yes(good2), Short: yes(short), File: yes(file),
		Refused: r.refused(), Confidence: r.Confidence,
	}
	if q.Part == partHeld && !s.env.Details.Held {
		return d
	}
	d.told = &told{Question: q.Question, Keys: q.Keys, Wanted: q.Short, Note: q.Note, ShortAnswer: r.Short, Answer: r.Answer, Cited: []string{}}
	for _, c := range r.Citations {
		d.Cited = append(d.Cited, c.Locator)
	}
	return d
}

// named are the documents that the note of a question names: by its file, or an article
// by its title.
func (s *session) named(q question) (names []string) {
	note, ending := q.Note, ""
	if q.Folder == freshwiki {
		note, ending = fileName(q.Note), ".md"
	}
	for name := range s.docs[q.Folder] {
		if strings.Contains(note, strings.TrimSuffix(name, ending)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// officeDocs are the papers of the office.
func officeDocs() (eval.Docs, error) {
	const dir = "office"
	docs := eval.Docs{}
	entries, err := fs.ReadDir(own, dir)
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeInternal, "list the office")
	}
	for _, e := range entries {
		text, err := own.ReadFile(path.Join(dir, e.Name()))
		if err != nil {
			return nil, marchwarden.Wrap(err, marchwarden.CodeInternal, "read the office")
		}
		docs[e.Name()] = string(text)
	}
	return docs, nil
}
