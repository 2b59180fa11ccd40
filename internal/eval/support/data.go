package support

import (
	"embed"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// pair is a claim beside its evidence and what people said of the two.
type pair struct {
	id       string
	group    string // pairs of one group share a question, a claim or a document
	heading  string // above the evidence
	claim    string
	excerpts []string
	label    verify.Verdict
	open     bool // of claims: the half that the cuts may be read off
}

func (p pair) evidence() []verify.Excerpt {
	out := make([]verify.Excerpt, len(p.excerpts))
	for i, x := range p.excerpts {
		out[i] = verify.Excerpt{Heading: p.heading, Text: x}
	}
	return out
}

// set is one body of labelled pairs. The shipped weights are fitted on four of them
// for support; the others are only measured on, so that what is measured on them needs
// no folds. Nothing is fitted on a set whose licence is for non-commercial use.
type set struct {
	name   string
	files  []string
	read   func(d eval.Data) ([]pair, error)
	fitted bool
	denies bool // it has contradicted claims, off which the cut for them is read
	short  bool // its claims are other words for short passages, off which the cut for entailed is read
}

// sets are those with claims, evidence and labels.
var sets = []set{
	{"attributionbench", []string{"citations/attributionbench.jsonl.gz"}, attributionBench, true, false, false},
	{"wice", []string{"citations/wice.jsonl.gz"}, wice, false, false, false},
	{"scifact-claims", []string{"claims/scifact-train.jsonl.gz", "claims/scifact-corpus.jsonl.gz"}, scifact, false, true, false},
	{"climate-fever", []string{"claims/climate-fever.jsonl.gz"}, climateFever, true, false, false},
	{"healthver", []string{"claims/healthver.jsonl.gz"}, healthVer, true, true, false},
	{"fever-symmetric", []string{"claims/fever-symmetric.jsonl.gz"}, feverSymmetric, false, true, false},
	{"averitec", []string{"claims/averitec.jsonl.gz"}, averitec, false, false, false},
	{"ordinary", nil, ordinary, true, false, true},
	{"everyday", nil, everyday, false, false, true},
	{"claims", nil, ownClaims, false, false, true},
}

// own is what was written for this project. In claims.jsonl.gz are false claims that
// differ from a passage in one thing, true ones in other words, and quoted ones, of which
// half is open: what is fitted may look at it. In ordinary.jsonl.gz are claims in other
// words about ordinary documents, in everyday.jsonl.gz others about the same ones that
// differ in one thing, or in words only; all of it is open. seen.txt lists the claims of
// the public sets that the reader was trained on, as hashes. It and ordinary.jsonl.gz are
// made by tools/reader/held.py.
//
//go:embed claims.jsonl.gz everyday.jsonl.gz ordinary.jsonl.gz seen.txt
var own embed.FS

// pairs are those of a set that the reader was not trained on.
func (s set) pairs(d eval.Data) ([]pair, error) {
	list, err := own.ReadFile("seen.txt")
	if err != nil {
		return nil, fmt.Errorf("read what the reader has seen: %w", err)
	}
	seen := map[string]bool{}
	for h := range strings.FieldsSeq(string(list)) {
		seen[h] = true
	}
	all, err := s.read(d)
	return slices.DeleteFunc(all, func(p pair) bool {
		h := fnv.New32a()
		_, _ = h.Write([]byte(p.claim)) // it never fails
		return seen[fmt.Sprintf("%08x", h.Sum32())]
	}), err
}

func ownClaims(eval.Data) ([]pair, error) { return ours("claims") }

func everyday(eval.Data) ([]pair, error) { return ours("everyday") }

func ordinary(eval.Data) ([]pair, error) { return ours("ordinary") }

func ours(name string) ([]pair, error) {
	type row struct{ ID, Passage, Heading, Claim, Label, Part string }
	return each(eval.NewData(own, "the program"), name, func(_ int, r row) (pair, string) {
		return pair{id: r.ID, group: r.Heading, heading: r.Heading, claim: r.Claim, excerpts: []string{r.Passage}, open: r.Part == "open"}, r.Label
	})
}

// labels are the words of the sets for verdicts.
var labels = map[string]verify.Verdict{
	"attributable": verify.VerdictSupported, "not attributable": verify.VerdictUnsupported,
	"supported": verify.VerdictSupported, "partially_supported": verify.VerdictPartial, "not_supported": verify.VerdictUnsupported,
	"SUPPORTS": verify.VerdictSupported, "REFUTES": verify.VerdictContradicted, "NOT_ENOUGH_INFO": verify.VerdictUnsupported,
	"Supports": verify.VerdictSupported, "Refutes": verify.VerdictContradicted, "Neutral": verify.VerdictUnsupported,
	"SUPPORT": verify.VerdictSupported, "CONTRADICT": verify.VerdictContradicted,
	"Supported": verify.VerdictSupported, "Refuted": verify.VerdictContradicted, "Not Enough Evidence": verify.VerdictUnsupported, "Conflicting Evidence/Cherrypicking": verify.VerdictPartial,
	"true": verify.VerdictSupported, "quoted": verify.VerdictSupported, "false": verify.VerdictUnsupported, "refuted": verify.VerdictContradicted,
}

func labelled(p pair, word string) (pair, error) {
	var ok bool
	if p.label, ok = labels[word]; !ok {
		return p, fmt.Errorf("pair %s: no such label as %q", p.id, word)
	}
	return p, nil
}

// each reads a set whose rows are one pair each.
func each[T any](d eval.Data, name string, one func(n int, row T) (pair, string)) ([]pair, error) {
	rows, err := eval.Rows[T](d, name)
	if err != nil {
		return nil, err
	}
	out := make([]pair, 0, len(rows))
	for i, row := range rows {
		p, word := one(i, row)
		if p, err = labelled(p, word); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func attributionBench(d eval.Data) ([]pair, error) {
	type row struct {
		ID         string   `json:"id"`
		Claim      string   `json:"claim"`
		Question   string   `json:"question"`
		References []string `json:"references"`
		Label      string   `json:"attribution_label"`
	}
	return each(d, "citations/attributionbench", func(n int, r row) (pair, string) {
		return pair{id: strconv.Itoa(n), group: r.Question, claim: r.Claim, excerpts: r.References}, r.Label
	})
}

func wice(d eval.Data) ([]pair, error) {
	type row struct {
		Claim    string   `json:"claim"`
		Evidence []string `json:"evidence"`
		Label    string   `json:"label"`
		Meta     struct {
			Title string `json:"claim_title"`
		} `json:"meta"`
	}
	return each(d, "citations/wice", func(n int, r row) (pair, string) {
		return pair{id: strconv.Itoa(n), group: r.Meta.Title, claim: r.Claim, excerpts: r.Evidence}, r.Label
	})
}

// sentencePair is a row of the sets that have one text as evidence.
type sentencePair struct {
	Claim    string `json:"claim"`
	Evidence string `json:"evidence"`
	Label    string `json:"label"`
	Topic    string `json:"topic_ip"`
}

func healthVer(d eval.Data) ([]pair, error) {
	return each(d, "claims/healthver", func(n int, r sentencePair) (pair, string) {
		return pair{id: strconv.Itoa(n), group: r.Topic, claim: r.Claim, excerpts: []string{r.Evidence}}, r.Label
	})
}

// feverSymmetric has every claim with two texts, one for it and one against it, and
// every text with two claims: the texts alone tell nothing.
func feverSymmetric(d eval.Data) ([]pair, error) {
	pairs, err := each(d, "claims/fever-symmetric", func(n int, r sentencePair) (pair, string) {
		return pair{id: strconv.Itoa(n), group: r.Evidence, claim: r.Claim, excerpts: []string{r.Evidence}}, r.Label
	})
	join(pairs)
	return pairs, err
}

// join gives pairs that share a claim or a group, directly or through others, one
// group: the first of theirs.
func join(pairs []pair) {
	parent := map[string]string{}
	var root func(s string) string
	root = func(s string) string {
		if p, ok := parent[s]; ok && p != s {
			return root(p)
		}
		return s
	}
	for _, p := range pairs {
		a, b := root("group\x00"+p.group), root("claim\x00"+p.claim)
		if a != b {
			parent[b] = a
		}
	}
	for i, p := range pairs {
		pairs[i].group = root("group\x00" + p.group)
	}
}

func climateFever(d eval.Data) ([]pair, error) {
	type row struct {
		Claim     string `json:"claim"`
		ID        string `json:"claim_id"`
		Evidences []struct {
			Text  string `json:"evidence"`
			Label string `json:"evidence_label"`
		} `json:"evidences"`
	}
	rows, err := eval.Rows[row](d, "claims/climate-fever")
	if err != nil {
		return nil, err
	}
	var out []pair
	for _, r := range rows {
		for k, e := range r.Evidences {
			p, err := labelled(pair{id: r.ID + "." + strconv.Itoa(k), group: r.ID, claim: r.Claim, excerpts: []string{e.Text}}, e.Label)
			if err != nil {
				return nil, err
			}
			out = append(out, p)
		}
	}
	return out, nil
}

// scifact holds every claim against the abstracts it cites. One that was found to
// hold no evidence does not support it.
func scifact(d eval.Data) ([]pair, error) {
	type row struct {
		ID       int    `json:"id"`
		Claim    string `json:"claim"`
		Cited    []int  `json:"cited_doc_ids"`
		Evidence map[string][]struct {
			Label string `json:"label"`
		} `json:"evidence"`
	}
	type document struct {
		ID       int      `json:"doc_id"`
		Abstract []string `json:"abstract"`
	}
	documents, err := eval.Rows[document](d, "claims/scifact-corpus")
	if err != nil {
		return nil, err
	}
	abstracts := map[int][]string{}
	for _, doc := range documents {
		abstracts[doc.ID] = doc.Abstract
	}
	rows, err := eval.Rows[row](d, "claims/scifact-train")
	if err != nil {
		return nil, err
	}
	var out []pair
	for _, r := range rows {
		for _, id := range r.Cited {
			word := "NOT_ENOUGH_INFO"
			if found := r.Evidence[strconv.Itoa(id)]; len(found) > 0 {
				word = found[0].Label
			}
			p, err := labelled(pair{id: fmt.Sprintf("%d.%d", r.ID, id), group: strconv.Itoa(id), claim: r.Claim, excerpts: abstracts[id]}, word)
			if err != nil {
				return nil, err
			}
			out = append(out, p)
		}
	}
	join(out)
	return out, nil
}

// averitec holds claims against the answers that fact-checkers found, each with its
// question.
func averitec(d eval.Data) ([]pair, error) {
	type row struct {
		Claim     string `json:"claim"`
		Label     string `json:"label"`
		Questions []struct {
			Question string `json:"question"`
			Answers  []struct {
				Answer string `json:"answer"`
			} `json:"answers"`
		} `json:"questions"`
	}
	return each(d, "claims/averitec", func(n int, r row) (pair, string) {
		p := pair{id: strconv.Itoa(n), group: strconv.Itoa(n), claim: r.Claim}
		for _, q := range r.Questions {
			for _, a := range q.Answers {
				p.excerpts = append(p.excerpts, q.Question+" "+a.Answer)
			}
		}
		return p, r.Label
	})
}
