package conform

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/client"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// asked are the limits that the real question is asked under.
var asked = marchwarden.Preset(marchwarden.Shallow)

// answers asks a real question and looks at every promise about the result.
func (b *bench) answers(ctx context.Context) {
	reply, err := b.call(ctx, map[string]any{"question": b.o.Question, "depth": string(marchwarden.Shallow), "constraints": map[string]any{
		"max_iterations": asked.MaxIterations, "token_budget": asked.TokenBudget, "max_sources": asked.MaxSources}})
	if err != nil {
		b.note("answer", Fail, "a real question: %v", withHint(err))
		return
	}
	res, err := reply.Result()
	if err != nil {
		b.note("answer", Fail, "a real question: %v", err)
		return
	}
	b.note("answer", Pass, "a real question gives a result that keeps the schema")
	b.verdict("structured", !reply.FromText, "the result is structured content", Warn, "the result is sent as text; structured content can be checked by any client")
	b.budget(res)
	if len(res.Citations) == 0 {
		for _, id := range []string{"markers", "marked", "excerpts", "evidence"} {
			b.note(id, Skipped, "the answer cites nothing; check again with a question that it can answer")
		}
		return
	}
	b.markers(res)
	b.excerpts(res)
	b.evidence(ctx, res)
}

// judge notes a check that fails with the first of what is wrong, if anything is.
func (b *bench) judge(id string, wrong []string, right string) {
	more := ""
	if len(wrong) > 1 {
		more = fmt.Sprintf(", and %d more", len(wrong)-1)
	}
	b.verdict(id, len(wrong) == 0, right, Fail, strings.Join(wrong[:min(len(wrong), 1)], "")+more)
}

// budget holds the cost to what was allowed.
func (b *bench) budget(res *marchwarden.Result) {
	cost := res.CostMetadata
	var wrong []string
	for _, c := range []struct {
		name    string
		is, max int
	}{
		{"tokens_used", cost.TokensUsed, asked.TokenBudget},
		{"iterations_run", cost.IterationsRun, asked.MaxIterations},
		{"sources_read", cost.SourcesRead, asked.MaxSources},
	} {
		if c.is > c.max && (c.name != "tokens_used" || !cost.OverBudget) { // a provider may count more than can be foreseen
			wrong = append(wrong, fmt.Sprintf("%s is %d, over the %d that were allowed", c.name, c.is, c.max))
		}
	}
	b.judge("budget", wrong, "it stayed within its budget")
}

// marker is one or several numbers in brackets: [1], [2, 3].
var marker = regexp.MustCompile(`\[(\d{1,4}(?:\s*,\s*\d{1,4})*)\]`)

// markers holds the answer to its citations.
func (b *bench) markers(res *marchwarden.Result) {
	var wrong []string
	for _, m := range marker.FindAllStringSubmatch(res.Answer, -1) {
		for number := range strings.SplitSeq(m[1], ",") {
			n, err := strconv.Atoi(strings.TrimSpace(number))
			if err != nil || n < 1 || n > len(res.Citations) {
				wrong = append(wrong, fmt.Sprintf("the marker [%s] has no citation; there are %d", strings.TrimSpace(number), len(res.Citations)))
			}
		}
	}
	b.judge("markers", wrong, "every marker in the answer has its citation")
	all := sentences(res.Answer)
	bare := slices.DeleteFunc(slices.Clone(all), marker.MatchString)
	if len(bare) == 0 {
		b.note("marked", Pass, "every sentence of the answer has a marker")
		return
	}
	outcome := Warn // some may be no statements, which a person can tell
	if 2*len(bare) > len(all) {
		outcome = Fail
	}
	b.note("marked", outcome, "%d of %d sentences have no marker, such as %s", len(bare), len(all), strconv.Quote(plaintext.Line(bare[0], maxShown)))
}

// minWords is how long a sentence is that can state something.
const minWords = 3

// sentences are the statements of a Markdown text, roughly: no headings, questions, fragments or code.
func sentences(markdown string) []string {
	var all []string
	code := false
	for line := range strings.Lines(markdown) {
		line = strings.ReplaceAll(strings.TrimSpace(line), "][", "] [") // as marks of one sentence
		if strings.HasPrefix(line, "```") {
			code = !code
			continue
		}
		if code || strings.HasPrefix(line, "#") || strings.HasSuffix(line, ":") {
			continue
		}
		for _, at := range lexicon.Sentences(line) {
			s := line[at.Start:at.End]
			bare := strings.TrimSpace(marker.ReplaceAllString(s, ""))
			if len(strings.Fields(bare)) >= minWords && !strings.HasSuffix(bare, "?") {
				all = append(all, s)
			}
		}
	}
	return all
}

// excerpts holds every citation to saying where it is from and what stands there.
func (b *bench) excerpts(res *marchwarden.Result) {
	var wrong []string
	for i, c := range res.Citations {
		fault := ""
		switch {
		case strings.TrimSpace(c.RawExcerpt) == "":
			fault = "has no excerpt"
		case utf8.RuneCountInString(c.RawExcerpt) > marchwarden.MaxExcerptChars:
			fault = fmt.Sprintf("has an excerpt of over %d characters", marchwarden.MaxExcerptChars)
		case strings.TrimSpace(c.Locator) == "":
			fault = "has no locator"
		case strings.TrimSpace(c.Source) == "":
			fault = "does not say what kind of source it is"
		default:
			continue
		}
		wrong = append(wrong, fmt.Sprintf("citation %d %s", i+1, fault))
	}
	b.judge("excerpts", wrong, "every citation says where it is from and what stands there")
}

// evidence looks up what is cited and holds the excerpts against it.
func (b *bench) evidence(ctx context.Context, res *marchwarden.Result) {
	const kept = "; its pages will be fetched again where that is possible, and its citations count for less where it is not"
	if !b.session.Card().Evidence {
		b.note("evidence", Skipped, "it hands over none of what it cites"+kept)
		return
	}
	var wrong []string
	checked := 0
	for i, c := range res.Citations {
		if c.ContentHash == "" || c.RawExcerpt == marchwarden.ExcerptNonText {
			continue
		}
		checked++
		text, err := b.session.Evidence(ctx, c.ContentHash)
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("the document of citation %d: %v", i+1, err))
		} else if fault := stands(c, text); fault != "" {
			wrong = append(wrong, fmt.Sprintf("citation %d: %s", i+1, fault))
		}
	}
	if checked == 0 {
		b.note("evidence", Skipped, "no citation has a content_hash"+kept)
		return
	}
	b.judge("evidence", wrong, fmt.Sprintf("%d of %d citations stand in the documents that it hands over", checked, len(res.Citations)))
}

// stands says what keeps a citation from standing in a text, or "".
func stands(c marchwarden.Citation, text []byte) string {
	excerpt, cut := strings.CutSuffix(c.RawExcerpt, marchwarden.ExcerptCut)
	if c.Span == nil {
		if !bytes.Contains(text, []byte(excerpt)) {
			return "the excerpt is not in the document"
		}
		return ""
	}
	if !c.Span.In(len(text)) {
		return fmt.Sprintf("the span ends at byte %d of %d", c.Span.End, len(text))
	}
	there := string(text[c.Span.Start:c.Span.End])
	if there == c.RawExcerpt || (cut && there == excerpt) {
		return ""
	}
	return "the excerpt is not what stands at the span"
}

// maxShown bounds what a server says where it becomes part of a finding.
const maxShown = 120

// inputs are the fields of a request, by path, each with a value that it takes.
var inputs = []struct {
	path     string
	value    any
	optional bool // of the contract, so that leaving it out is not worth a word
}{
	{"question", "What is it?", false},
	{"context", "known already", false},
	{"depth", "shallow", false},
	{"constraints", map[string]any{}, false},
	{"constraints.max_iterations", 2.0, false},
	{"constraints.token_budget", 5000.0, false},
	{"constraints.max_sources", 5.0, false},
	{"constraints.source_filter", ".gov", true},
	{"resume", "0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10", true},
}

// surface looks at what the server says of itself.
func (b *bench) surface() {
	offer := b.session.Surface()
	n := len(offer.Tools)
	b.verdict("one-tool", n == 1, "research is its one tool", Fail, fmt.Sprintf("it has %d tools; a researcher has one, research", n))
	b.verdict("contract-version", offer.Contract != "", "keeps contract "+offer.Contract,
		Warn, fmt.Sprintf("the tool names no version of the contract; set _meta %q to %q", "marchwarden/contract", marchwarden.ContractVersion))
	b.input(offer)
	b.verdict("output-schema", offer.Output != nil, "the tool has an output schema", Warn, "the tool has no output schema")
}

// input holds the input schema to the fields of a request: it must take what a field may hold, and
// names a field if it refuses what the field may not.
func (b *bench) input(offer client.Surface) {
	var wrong, missing []string
	for _, in := range inputs {
		if err := offer.Accepts(asking(in.path, in.value)); err != nil {
			wrong = append(wrong, fmt.Sprintf("%s must take %v: %s", in.path, in.value, plaintext.Line(err.Error(), maxShown)))
		} else if !in.optional && offer.Accepts(asking(in.path, []any{})) == nil {
			missing = append(missing, in.path)
		}
	}
	for _, path := range []string{"field_of_tomorrow", "constraints.field_of_tomorrow"} {
		if err := offer.Accepts(asking(path, true)); err != nil {
			wrong = append(wrong, "further fields must be allowed: "+plaintext.Line(err.Error(), maxShown))
		}
	}
	b.judge("input-schema", wrong, "the fields of a request have the right types, and others are allowed")
	if offer.Accepts(asking("question", "What is it?")) != nil {
		b.note("input-optional", Skipped, "a question alone is refused, so it cannot be told which fields there are")
		return
	}
	b.verdict("input-optional", len(missing) == 0, "the input schema names every field of a request", Warn, "the input schema does not name "+strings.Join(missing, ", "))
}

// asking is a request with one field, by its path, beside the question.
func asking(path string, value any) map[string]any {
	args := map[string]any{"question": "What is it?"}
	if outer, inner, nested := strings.Cut(path, "."); nested {
		args[outer] = map[string]any{inner: value}
	} else {
		args[path] = value
	}
	return args
}
