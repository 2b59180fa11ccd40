package page

import (
	"net/url"
	"strconv"
)

// The addresses that pages lead to. Forms that change something are sent by POST;
// their fields are named in the comments. All of them carry "csrf" as well.
const (
	AskPath     = "/"        // GET: the form; ?from=ID fills it with an earlier question
	SubmitPath  = "/ask"     // POST: question, context, depth, token_budget, max_sources, researcher (repeated)
	HistoryPath = "/history" // GET: q, status (repeated), researcher (repeated), min_cost, max_cost, min_confidence, max_confidence, since, until, offset, with
	ComparePath = "/compare" // GET: run, twice
	NumbersPath = "/numbers" // GET: days
	InPath      = "/in"      // GET: the form; POST: token, next
	OutPath     = "/out"     // POST
	StaticPath  = "/static/" // GET: what Static serves
	runsPath    = "/runs/"
)

// Act is something that is done with a run, and the last element of its address.
type Act string

// The acts. Those that change something are POST.
const (
	Cancel Act = "cancel" // POST
	Resume Act = "resume" // POST: token_budget, or none to use what is left
	Rerun  Act = "rerun"  // POST: the run again from its record, the results compared
	Check  Act = "drift"  // POST: fetch the sources again; GET: the last report
	Delete Act = "delete" // GET: Confirm; POST: confirmed=yes
	Events Act = "events" // GET: the event stream; events "picture" (the live fragment), "over", "oops" (JSON with message and hint)
	Peek   Act = "panel"  // GET ?source=N: the panel alone, for the script
)

// RunPath is the address of a run: its answer, or its progress while there is none.
// The answer takes ?source=N for the source in the panel and ?support=VERDICT for the
// claims to show.
func RunPath(id string) string { return runsPath + url.PathEscape(id) }

// ActPath is the address of an act on a run.
func ActPath(id string, act Act) string { return RunPath(id) + "/" + url.PathEscape(string(act)) }

// ExportPath is the address of a run in another form.
func ExportPath(id, format string) string { return RunPath(id) + "/export/" + url.PathEscape(format) }

// SourcePath is the address of the page of a citation's whole source, at the excerpt.
func SourcePath(id string, number int) string {
	n := strconv.Itoa(number)
	return RunPath(id) + "/source/" + n + "#c" + n
}

func againPath(id string) string { return withQuery(AskPath, url.Values{"from": {id}}) }

func besidePath(id string) string { return withQuery(HistoryPath, url.Values{"with": {id}}) }

func withQuery(path string, q url.Values) string {
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}
