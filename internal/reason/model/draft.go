package model

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

const (
	maxClaims   = 40
	maxGaps     = 8
	maxLeads    = 6 // discoveries, and open questions
	maxPassages = 6 // of one claim
	maxSplit    = 4 // sentences that one claim may turn out to be
	claimChars  = 600
	topicChars  = 120
	detailChars = 300
	idChars     = 40
	layers      = 4 // how deep addresses may hide in each other
)

// answerOf finds the answer in a model's text: an object with claims, or the claims alone.
func answerOf(s string) (llm.Named, bool) {
	raw, ok := llm.Object(s)
	if !ok {
		return nil, false
	}
	fields := llm.Fields(raw)
	if fields == nil {
		fields = llm.Named{"claims": raw}
	}
	var claims []json.RawMessage
	return fields, json.Unmarshal(fields["claims"], &claims) == nil
}

type reader struct {
	v   llm.Quoter
	s   *reason.State
	out reason.Draft
}

// draftOf reads an answer, and how many claims it had. An item that cannot be read is left out.
func draftOf(s *reason.State, fields llm.Named) (reason.Draft, int) {
	r := reader{v: newView(s.Nonce), s: s}
	had := each(fields["claims"], r.claim)
	each(fields["gaps"], r.gap)
	each(fields["discoveries"], r.discovery)
	each(fields["open_questions"], r.openQuestion)
	return r.out, had
}

// each reads the items of a list and counts them.
func each(list json.RawMessage, read func(llm.Named)) int {
	items := llm.List(list)
	for _, item := range items {
		read(llm.Fields(item))
	}
	return len(items)
}

// claim reads one claim. Two sentences in it become two claims on the same passages; the gate counts ids that do
// not exist.
func (r *reader) claim(fields llm.Named) {
	said := fields.Text("text")
	ids := idsOf(r.v, fields["passages"], maxPassages)
	if len(ids) == 0 {
		for _, m := range inlineID.FindAllString(llm.ClipBytes(said, 4*claimChars), maxPassages) {
			ids = append(ids, idsIn(m)...)
		}
	}
	begins := string(bytes.TrimSpace(fields["new_paragraph"])) == "true"
	for i, sentence := range sentences(r.v.Line(said, maxSplit*claimChars)) {
		sentence = llm.Clip(withoutAddresses(sentence, r.citedHas(ids)), claimChars)
		if len(lexicon.Terms(sentence)) == 0 || len(r.out.Claims) == maxClaims {
			continue
		}
		r.out.Claims = append(r.out.Claims, reason.Claim{
			Text: sentence, Passages: slices.Clone(ids), Paragraph: begins && i == 0, Support: marchwarden.Unchecked,
		})
	}
}

// sentences splits a claim. A piece without a word of its own belongs to the one before it.
func sentences(s string) []string {
	var out []string
	for _, span := range lexicon.Sentences(s) {
		piece := s[span.Start:span.End]
		if len(out) > 0 && (len(lexicon.Terms(piece)) < 2 || len(out) == maxSplit) {
			out[len(out)-1] += " " + piece
			continue
		}
		out = append(out, piece)
	}
	return out
}

var (
	passageID = regexp.MustCompile(`(?i)\bS\d{1,9}\.\d{1,9}\b`)
	inlineID  = regexp.MustCompile(`(?i)[\[(](?:S\d{1,9}\.\d{1,9}[,; ]*)+[\])]`)
)

// idsOf reads ids in a list or in one string. A text without any is passed on as the unknown id it is.
func idsOf(v llm.Quoter, raw json.RawMessage, most int) []evidence.ID {
	items := llm.List(raw)
	if _, ok := llm.Text(raw); ok {
		items = []json.RawMessage{raw}
	}
	var out []evidence.ID
	add := func(id evidence.ID) {
		if id != "" && len(out) < most && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	for _, item := range items {
		s, ok := llm.Text(item)
		if !ok {
			continue
		}
		found := idsIn(llm.ClipBytes(s, 200))
		for _, id := range found {
			add(id)
		}
		if len(found) == 0 {
			add(evidence.ID(v.Line(s, idChars)))
		}
	}
	return out
}

func idsIn(s string) []evidence.ID {
	var out []evidence.ID
	for _, m := range passageID.FindAllString(s, maxPassages) {
		out = append(out, evidence.ID("S"+m[1:]))
	}
	return out
}

var leftovers = strings.NewReplacer("()", "", "( )", "", "[]", "", "<>", "", " .", ".", " ,", ",")

// withoutAddresses cuts out the addresses that allowed does not know, and those that cutting lets appear.
func withoutAddresses(s string, allowed func(address string) bool) string {
	for range layers {
		left := verify.Unlink(s, allowed)
		if left == s {
			return s
		}
		s = strings.Join(strings.Fields(leftovers.Replace(strings.ReplaceAll(left, verify.Removed, ""))), " ")
	}
	return ""
}

// citedHas knows what stands in the passages with the ids.
func (r *reader) citedHas(ids []evidence.ID) func(string) bool {
	return func(address string) bool {
		return slices.ContainsFunc(ids, func(id evidence.ID) bool {
			_, ps, ok := r.s.Evidence.Passage(id)
			return ok && strings.Contains(strings.ToLower(ps.Text), strings.ToLower(address))
		})
	}
}

// words are words of the model's for the result, without addresses that the run has not met.
func (r *reader) words(raw json.RawMessage, chars int, ids ...evidence.ID) (string, bool) {
	s, ok := llm.Text(raw)
	if !ok {
		return "", false
	}
	cited := r.citedHas(ids)
	s = withoutAddresses(r.v.Line(s, 2*chars), func(a string) bool { return cited(a) || r.s.Offered(a) })
	return llm.Clip(s, chars), true
}

func (r *reader) gap(fields llm.Named) {
	topic, okTopic := r.words(fields["topic"], topicChars)
	detail, okDetail := r.words(fields["detail"], detailChars)
	if c := marchwarden.GapCategory(fields.Text("category")); c.Known() && okTopic && okDetail && topic != "" && len(r.out.Gaps) < maxGaps {
		r.out.Gaps = append(r.out.Gaps, marchwarden.Gap{Topic: topic, Category: c, Detail: detail})
	}
}

var researcherName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

// discovery reads a lead. One that names no passage of the run is none.
func (r *reader) discovery(fields llm.Named) {
	id, locator := r.place(fields["passage"])
	query, okQuery := r.words(fields["query"], queryChars, id)
	why, okWhy := r.words(fields["reason"], detailChars, id)
	researcher, okName := llm.Text(fields["researcher"])
	if !okQuery || !okWhy || !okName || query == "" || locator == "" || len(r.out.Discoveries) == maxLeads {
		return
	}
	if researcher = strings.ToLower(strings.TrimSpace(researcher)); !researcherName.MatchString(researcher) || r.s.Nonce != "" && strings.Contains(researcher, r.s.Nonce) {
		researcher = ""
	}
	if t := marchwarden.DiscoveryType(fields.Text("type")); t.Known() {
		r.out.Discoveries = append(r.out.Discoveries, marchwarden.DiscoveryEvent{Type: t, SuggestedResearcher: researcher, Query: query, Reason: why, SourceLocator: locator})
	}
}

func (r *reader) openQuestion(fields llm.Named) {
	id, locator := r.place(fields["passage"])
	question, okQuestion := r.words(fields["question"], detailChars, id)
	background, okContext := r.words(fields["context"], detailChars, id)
	if !okQuestion || !okContext || question == "" || len(r.out.OpenQuestions) == maxLeads {
		return
	}
	if p := marchwarden.Priority(fields.Text("priority")); p.Known() {
		r.out.OpenQuestions = append(r.out.OpenQuestions, marchwarden.OpenQuestion{Question: question, Context: background, Priority: p, SourceLocator: locator})
	}
}

// place is the first passage that a field names and its document's locator, or nothing.
func (r *reader) place(raw json.RawMessage) (evidence.ID, string) {
	for _, id := range idsOf(r.v, raw, maxPassages) {
		if src, _, ok := r.s.Evidence.Passage(id); ok {
			return id, src.Page.Locator
		}
	}
	return "", ""
}
