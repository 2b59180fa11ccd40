package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Finding is the verdict on one citation, or on one passage that is closest.
type Finding struct {
	Number  int    // of the citation, from one
	Near    bool   // it is no citation: it is one of what is closest
	Locator string //
	Hash    string // of the stored text
	Problem string // "" when the excerpt stands in the stored bytes
}

// Name says what the finding is about.
func (f Finding) Name() string {
	if f.Near {
		return fmt.Sprintf("closest passage %d", f.Number)
	}
	return fmt.Sprintf("citation [%d]", f.Number)
}

// excerpts are the citations of a result, and then what it calls closest, each with the
// finding about it.
func excerpts(res *marchwarden.Result) iter.Seq2[Finding, marchwarden.Citation] {
	return func(yield func(Finding, marchwarden.Citation) bool) {
		for i, c := range res.Citations {
			if !yield(Finding{Number: i + 1, Locator: c.Locator, Hash: c.ContentHash}, c) {
				return
			}
		}
		for i, c := range res.Closest {
			if !yield(Finding{Number: i + 1, Near: true, Locator: c.Locator, Hash: c.ContentHash}, c.Citation()) {
				return
			}
		}
	}
}

// ClaimFinding is the verdict on one claim.
type ClaimFinding struct {
	marchwarden.Claim
	Problem string // "" when every citation of the claim stands
}

// Report is what Check found.
type Report struct {
	Excerpts []Finding // the citations, and then the passages that are closest
	Claims   []ClaimFinding
	Answer   []string // problems of the answer text itself, and of the short one
}

// OK reports whether everything stands.
func (r Report) OK() bool { return len(r.problems()) == 0 }

// String names the first problems.
func (r Report) String() string {
	all := r.problems()
	if len(all) == 0 {
		return "everything stands"
	}
	return strings.Join(all[:min(3, len(all))], "; ")
}

func (r Report) problems() []string {
	var all []string
	for _, f := range r.Excerpts {
		if f.Problem != "" {
			all = append(all, f.Name()+": "+f.Problem)
		}
	}
	all = append(all, r.Answer...)
	for _, c := range r.Claims {
		if c.Problem != "" {
			all = append(all, fmt.Sprintf("claim %q: %s", clip(c.Text), c.Problem))
		}
	}
	return all
}

// Check holds a result against the stored bytes: every excerpt at its span, every
// marker, every claim and every block against the citations. A damaged or missing blob is a
// finding that names it; an error means only that ctx ended. It judges no claim: what
// stood once stands for good, whatever judge comes later. CheckSupport does.
func Check(ctx context.Context, blobs blob.Store, res *marchwarden.Result) (Report, error) {
	c := &checker{ctx: ctx, blobs: blobs, res: res}
	r := &c.report
	for f, cited := range excerpts(res) {
		if err := c.citation(cited); err != nil {
			f.Problem = err.Error()
		}
		r.Excerpts = append(r.Excerpts, f)
	}
	for _, said := range res.Claims {
		r.Claims = append(r.Claims, ClaimFinding{said, c.claim(said)})
	}
	for _, m := range markerNumber.FindAllStringSubmatch(res.Answer, -1) {
		if n, _ := strconv.Atoi(m[1]); n < 1 || n > len(res.Citations) {
			r.Answer = append(r.Answer, fmt.Sprintf("marker %s indexes no citation", m[0]))
		}
	}
	if len(res.Blocks) > 0 {
		r.Answer = append(r.Answer, c.blocks()...)
	} else if loose := outside(res); loose != "" {
		r.Answer = append(r.Answer, fmt.Sprintf("the answer says what no claim does: %q", clip(loose)))
	}
	if err := c.short(); err != nil {
		r.Answer = append(r.Answer, fmt.Sprintf("the short answer does not stand: %v", err))
	}
	if !r.OK() {
		return *r, ctx.Err()
	}
	return *r, nil
}

// checker holds a result against the stored bytes. It has the text that it read last at
// hand: what a result cites stands in few documents, and a large one takes a while to read.
type checker struct {
	ctx        context.Context
	blobs      blob.Store
	res        *marchwarden.Result
	report     Report
	hash, last string
}

// text is a stored text.
func (c *checker) text(hash string) (string, error) {
	if hash == c.hash && hash != "" {
		return c.last, nil
	}
	ref, err := blob.Parse(hash)
	if err != nil {
		return "", err
	}
	content, err := c.blobs.Get(c.ctx, ref)
	if err != nil {
		return "", err
	}
	c.hash, c.last = hash, string(content)
	return c.last, nil
}

// stands is what stands at a place of a stored text.
func (c *checker) stands(hash string, at marchwarden.Span) (string, error) {
	text, err := c.text(hash)
	if err != nil {
		return "", err
	}
	if !at.In(len(text)) {
		return "", fmt.Errorf("span %d–%d is outside the %d bytes of %s", at.Start, at.End, len(text), hash)
	}
	return text[at.Start:at.End], nil
}

// CheckFetched holds the citations against the trace of the run that made them:
// what is cited was fetched, at that locator, with that content. A citation of a
// file may also name a line or page: CheckPlaces tells whether it is the right one.
// An investigation fetches nothing itself: what it cites is what a researcher reported,
// and got hold of as such.
func CheckFetched(log *trace.Log, res *marchwarden.Result) []Finding {
	all, heard := fetchesOf(log), heardOf(log)
	var bad []Finding
	for f, c := range excerpts(res) {
		if step, _ := all.behind(c); step == nil && !heard[document(c.Locator, c.ContentHash)] {
			f.Problem = "the run fetched no such content at this locator"
			bad = append(bad, f)
		}
	}
	return bad
}

// CheckPlaces finds the lines and pages anew that citations of files name, in the
// bytes that the run stored. One that is wrong, or cannot be found any more, is a
// finding, unless another version read the document. What was never fetched is left to CheckFetched. An error means only
// that ctx ended.
func CheckPlaces(ctx context.Context, blobs blob.Store, log *trace.Log, res *marchwarden.Result) ([]Finding, error) {
	all := fetchesOf(log)
	known := map[*trace.FetchComplete]func(int) string{}
	var bad []Finding
	for f, c := range excerpts(res) {
		step, place := all.behind(c)
		if step == nil || place == "" {
			continue
		}
		if known[step] == nil {
			at, err := places(ctx, blobs, step)
			if ctx.Err() != nil {
				return bad, ctx.Err()
			}
			if err != nil {
				f.Problem = fmt.Sprintf("its place in the document cannot be checked: %v", err)
				bad = append(bad, f)
				continue
			}
			known[step] = at
		}
		if f.Problem = misplaced(step, c.Span, known[step], place); f.Problem != "" {
			bad = append(bad, f)
		}
	}
	return bad, nil
}

// misplaced says what is wrong with the place that a citation names.
func misplaced(step *trace.FetchComplete, span *marchwarden.Span, at func(int) string, place string) string {
	if span == nil {
		return "no span: there is nothing to check its place against"
	}
	switch found := at(span.Start); {
	case found == "" && !(fetch.Page{Extractor: step.Extractor}).Outdated():
		return fmt.Sprintf("the place of its excerpt in the document is not known, and it names %s", place)
	case found != "" && found != place:
		return fmt.Sprintf("its excerpt begins at %s of the document, not at %s", found, place)
	}
	return ""
}

// fetches are the documents that a run got, by locator and hash of the content.
type fetches map[[2]string]*trace.FetchComplete

func fetchesOf(log *trace.Log) fetches {
	all := fetches{}
	for _, s := range log.Steps {
		if f, ok := s.(*trace.FetchComplete); ok && f.Error == "" {
			all[[2]string{f.URL, f.ContentHash.String()}] = f
		}
	}
	return all
}

// heardOf are the documents that researchers cited to an investigation, by locator
// without a place, and hash of the content. Whether the place is right, the runs of
// those researchers tell.
func heardOf(log *trace.Log) map[[2]string]bool {
	heard := map[[2]string]bool{}
	for _, s := range log.Steps {
		if e, ok := s.(*trace.Evidence); ok && e.Error == "" && e.ContentHash.Valid() {
			heard[document(e.Locator, e.ContentHash.String())] = true
		}
	}
	return heard
}

func document(locator, hash string) [2]string {
	bare, _ := CutPlace(locator)
	return [2]string{bare, hash}
}

// behind is the fetch of what a citation cites, or nil, and the place that its
// locator adds to that of the document, or "". A name that looks like one with a
// place is still a name.
func (all fetches) behind(c marchwarden.Citation) (*trace.FetchComplete, string) {
	if f := all[[2]string{c.Locator, c.ContentHash}]; f != nil {
		return f, ""
	}
	document, place := CutPlace(c.Locator)
	return all[[2]string{document, c.ContentHash}], place
}

var placeForm = regexp.MustCompile(`#(?:L|page=)[1-9][0-9]{0,8}$`)

// CutPlace parts the locator of a citation into that of the document and the line
// or page in it, which is "" when there is none. The name of a file may end like that by itself: a
// caller that knows the documents looks for the whole locator first.
func CutPlace(locator string) (document, place string) {
	at := placeForm.FindStringIndex(locator)
	if at == nil || at[0] == 0 {
		return locator, ""
	}
	return locator[:at[0]], locator[at[0]:]
}

// places tells where the parts of a fetched text stand in their document.
func places(ctx context.Context, blobs blob.Store, f *trace.FetchComplete) (func(int) string, error) {
	recorded, err := blobs.Get(ctx, f.OutputID)
	if err != nil {
		return nil, err
	}
	var outcome struct { // as package replay stores what an effect gave
		OK fetch.Page `json:"ok"`
	}
	if err := json.Unmarshal(recorded, &outcome); err != nil {
		return nil, fmt.Errorf("read the record of the fetch: %w", err)
	}
	text, err := blob.Text(ctx, blobs, f.ContentHash)
	if err != nil {
		return nil, err
	}
	return outcome.OK.Places(text, func() ([]byte, error) { return blobs.Get(ctx, f.RawHash) })
}

// outside is the text of the answer that belongs to no claim, or "" when the
// result does not list its claims or has none.
func outside(res *marchwarden.Result) string {
	if len(res.Claims) == 0 {
		return ""
	}
	texts := make([]string, 0, 2*len(res.Claims))
	for _, c := range res.Claims {
		texts = append(texts, escapeMarkdown(c.Text), c.Text)
	}
	// The longest first: a claim may be a part of another.
	slices.SortFunc(texts, func(a, b string) int { return len(b) - len(a) })
	rest := markerNumber.ReplaceAllString(res.Answer, "")
	for _, t := range texts {
		rest = strings.ReplaceAll(rest, t, "")
	}
	return strings.TrimSpace(rest)
}

func (c *checker) citation(cited marchwarden.Citation) error {
	if cited.RawExcerpt == marchwarden.ExcerptNonText { // no claim may rest on it, and it needs no stored bytes
		if cited.ContentHash == "" {
			return nil
		}
		_, err := c.text(cited.ContentHash)
		return err
	}
	if !utf8.ValidString(cited.RawExcerpt) {
		return errors.New("raw_excerpt is not valid UTF-8 and cannot be sent as it stands")
	}
	if n := utf8.RuneCountInString(cited.RawExcerpt); n > marchwarden.MaxExcerptChars {
		return fmt.Errorf("raw_excerpt has %d characters, the limit is %d", n, marchwarden.MaxExcerptChars)
	}
	if cited.Span == nil || cited.ContentHash == "" {
		return errors.New("no content_hash and span: there is nothing to check it against")
	}
	stored, err := c.stands(cited.ContentHash, *cited.Span)
	if err != nil {
		return err
	}
	if cited.RawExcerpt != stored && cited.RawExcerpt != stored+marchwarden.ExcerptCut {
		return fmt.Errorf("raw_excerpt is not what stands at %d–%d of %s", cited.Span.Start, cited.Span.End, cited.ContentHash)
	}
	return nil
}

// cites says what is wrong with the first of some citations that is not there or does not
// stand.
func (c *checker) cites(numbers []int) string {
	for _, n := range numbers {
		if n < 1 || n > len(c.res.Citations) {
			return fmt.Sprintf("citation %d does not exist", n)
		}
		if c.report.Excerpts[n-1].Problem != "" {
			return fmt.Sprintf("citation %d does not stand", n)
		}
	}
	return ""
}

// claim says what is wrong with a claim.
func (c *checker) claim(said marchwarden.Claim) string {
	if problem := c.cites(said.Citations); problem != "" {
		return problem
	}
	isText := func(n int) bool { return c.res.Citations[n-1].RawExcerpt != marchwarden.ExcerptNonText }
	switch {
	case len(said.Citations) == 0:
		return "no citation"
	case !slices.ContainsFunc(said.Citations, isText):
		return "no citation of text"
	case !strings.Contains(c.res.Answer, said.Text) && !strings.Contains(c.res.Answer, escapeMarkdown(said.Text)):
		return "not in the answer"
	case said.Support == marchwarden.Quoted && !c.quotes(said):
		return "it is called quoted, and no excerpt that it cites has its words"
	}
	return ""
}

var markerNumber = regexp.MustCompile(`\[(\d{1,9})\]`)
