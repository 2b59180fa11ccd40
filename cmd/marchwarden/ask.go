package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/corpus"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/files"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/web"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

type askOptions struct {
	researcher   string
	model        string
	search       string
	render       string
	timeout      string
	depth        string
	budget       optionalInt
	iterations   optionalInt
	sources      optionalInt
	sourceFilter string
	context      string
	library      []string
	embedded     bool
	json         bool
	out          string
	verbose      bool
	quiet        bool
}

const askHelp = `Ask a question and get an answer in which every factual sentence carries a
citation, or a plain statement of what was not found.

The files researcher, the default, answers from your folders: those given with
--library (or MARCHWARDEN_LIBRARY) together with those added by 'marchwarden
library add'. The embedded library is searched when there is no folder, or with
--embedded. Your documents go to a language model only if you name one.

The web researcher (--researcher web, or --search) answers from the open web. It
uses the search engines and the model whose keys are set, and without any key
Wikipedia and no model. 'marchwarden doctor' shows which.

The result goes to stdout, progress and warnings to stderr. The first Ctrl-C
ends the research with a partial result, the second ends the program.

EXIT STATUS
  0    answered, gaps and plain refusals included
  1    failed: there is no result
  2    wrong usage or bad input; nothing was written
  130  interrupted; the partial result is printed`

const askExamples = `  marchwarden ask "What are ideal crops for a garden in Utah?"
  marchwarden ask --researcher web "Who won the Nobel Prize in Physics in 2024?"
  marchwarden ask --model ollama/qwen3 --search searxng "What is new in CRISPR therapy?"
  marchwarden ask --library ~/notes --depth deep "What did we decide about the roof?"
  marchwarden ask --json "Who wrote the transformer paper?" | jq .citations
  echo "What is CRISPR?" | marchwarden ask --out report.md -`

func newAsk(a *app) *cobra.Command {
	var o askOptions
	cmd := &cobra.Command{
		Use: "ask [flags] QUESTION… | -", Short: "answer a question from documents, with citations",
		Long: askHelp, Example: askExamples,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runAsk(cmd.Context(), o, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.depth, "depth", "", "`DEPTH` of the research: shallow, balanced or deep (default balanced)")
	f.Var(&o.budget, "budget", fmt.Sprintf("use at most `N` tokens for the whole research, at least %d", marchwarden.MinTokenBudget))
	f.Var(&o.iterations, "max-iterations", fmt.Sprintf("search at most `N` times, %d to %d", marchwarden.MinIterations, marchwarden.MaxIterations))
	f.Var(&o.sources, "max-sources", fmt.Sprintf("read at most `N` documents, at least %d", marchwarden.MinSources))
	f.StringVar(&o.sourceFilter, "source-filter", "", "use nothing but this `LIST` of domains or suffixes, such as .gov,.edu,.md")
	f.StringVar(&o.context, "context", "", fmt.Sprintf("`TEXT` that you know already, at most %d characters", marchwarden.MaxContextChars))
	f.StringVar(&o.researcher, "researcher", "", "`NAME` of the researcher to ask: files or web (default files, or web with --search)")
	f.StringVar(&o.model, "model", "", "language `MODEL` that plans and writes, such as anthropic/claude-sonnet-5-5 or ollama/qwen3; extractive for none")
	f.StringVar(&o.search, "search", "", "search the web by this `LIST` of engines: tavily, brave, searxng, wikipedia")
	f.StringVar(&o.render, "render", "", "`WHEN` to run pages that need JavaScript in a local Chromium: auto or never (default auto)")
	f.StringVar(&o.timeout, "timeout", "", "end the research after this `TIME`, such as 90s (default 10m for the web, none for files)")
	f.StringArrayVar(&o.library, "library", nil, "search the folder `DIR`; may be given several times")
	f.BoolVar(&o.embedded, "embedded", false, "search the embedded library too")
	f.BoolVar(&o.json, "json", false, "print the result as JSON and nothing else")
	f.StringVar(&o.out, "out", "", "also write the result to `FILE`: JSON if it ends in .json, else a report")
	f.BoolVar(&o.verbose, "verbose", false, "show hashes, spans and how long each stage took")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	complete(cmd, "researcher", files.Name, web.Name)
	complete(cmd, "search", engineNames()...)
	complete(cmd, "render", renderAuto, renderNever)
	complete(cmd, "depth", string(marchwarden.Shallow), string(marchwarden.Balanced), string(marchwarden.Deep))
	return cmd
}

func (a *app) runAsk(ctx context.Context, o askOptions, args []string) error {
	c, err := a.loadConfig()
	if err != nil {
		return err
	}
	req, err := a.request(ctx, o, c, args)
	if err != nil {
		return err
	}
	if err := checkOut(o.out); err != nil {
		return err
	}
	watch := a.newWatch(c, o)
	defer watch.close()
	var told researcher.Call
	d, err := a.openDesk(c, deskOptions{
		researcher: o.researcher, library: o.library, embedded: o.embedded, model: o.model, search: o.search, render: o.render, timeout: o.timeout,
		told: func(call researcher.Call) { told = call }, warn: watch.warn,
	})
	if err != nil {
		return err
	}
	res, err := d.Research(ctx, req, watch.event)
	interrupted := ctx.Err() != nil
	watch.close()
	if err != nil {
		return errors.Join(err, d.Close())
	}
	f := d.facts(res.TraceID)
	screen := term.ResultOptions{
		Question: req.Question, Limits: req.Limits(),
		Sources: f.read, Cost: f.costWords(res.CostMetadata), Hints: c.hints(told.Start),
		Verbose: o.verbose, Timings: watch.timings,
	}
	if where := strings.Join(told.Start.Library, ", "); told.Start.Researcher == web.Name {
		screen.Searched = where
	} else {
		screen.Library = where
	}
	if err := errors.Join(a.deliver(o, res, screen), d.Close()); err != nil {
		return err
	}
	if interrupted {
		return &marchwarden.Error{Code: marchwarden.CodeCanceled, Message: "the result is partial", Err: errInterrupted}
	}
	return nil
}

// request makes a valid request of flags, settings and arguments. Its errors
// name the flag that is wrong.
func (a *app) request(ctx context.Context, o askOptions, c *config, args []string) (marchwarden.Request, error) {
	question, err := a.question(ctx, args)
	if err != nil {
		return marchwarden.Request{}, err
	}
	req := marchwarden.Request{Question: question, Context: o.context, Depth: marchwarden.Depth(o.depth)}
	if o.depth == "" {
		req.Depth = marchwarden.Depth(c.text(setDepth))
	}
	cons := marchwarden.Constraints{MaxIterations: o.iterations.v, TokenBudget: o.budget.v, MaxSources: o.sources.v, SourceFilter: o.sourceFilter}
	if cons != (marchwarden.Constraints{}) {
		req.Constraints = &cons
	}
	err = req.Validate()
	var e *marchwarden.Error
	if errors.As(err, &e) && flagNames[e.Field] != "" {
		named := *e
		named.Field = flagNames[e.Field]
		err = &named
	}
	return req, err
}

// flagNames says which flag fills which field of a request.
var flagNames = map[string]string{
	"context":                    "--context",
	"depth":                      "--depth",
	"constraints.max_iterations": "--max-iterations",
	"constraints.token_budget":   "--budget",
	"constraints.max_sources":    "--max-sources",
	"constraints.source_filter":  "--source-filter",
}

// question is the arguments, or all of stdin when they are "-".
func (a *app) question(ctx context.Context, args []string) (string, error) {
	if len(args) == 0 {
		return "", invalid("question", `for example: marchwarden ask "What grows in Utah?", or - to read it from stdin`, "is missing")
	}
	if !slices.Contains(args, "-") {
		return strings.Join(args, " "), nil
	}
	if len(args) > 1 {
		return "", invalid("question", "", `must be either words or "-" for stdin, not both`)
	}
	data, err := a.readStdin(ctx, marchwarden.MaxRequestBytes, "question")
	return strings.TrimSpace(string(data)), err
}

// deliver writes the result to the file that was asked for and prints it, even
// when the file cannot be written.
func (a *app) deliver(o askOptions, res *marchwarden.Result, screen term.ResultOptions) (err error) {
	if o.out != "" {
		failed := writeOut(o.out, func(w io.Writer) error {
			if strings.HasSuffix(strings.ToLower(o.out), ".json") {
				return printJSON(w, res)
			}
			return term.Style{}.Result(w, res, screen)
		})
		defer func() { err = errors.Join(failed, err) }()
	}
	if o.json {
		return printJSON(a.stdout, res)
	}
	return a.outStyle().Result(a.stdout, res, screen)
}

// hints tell how to search more than what was searched.
func (c *config) hints(start *trace.Start) []string {
	var hints []string
	if start.Researcher == web.Name {
		if start.Engine == "wikipedia" {
			hints = append(hints, "only Wikipedia was searched; TAVILY_API_KEY, BRAVE_API_KEY or SEARXNG_URL open the web")
		}
		if start.Model == "" {
			hints = append(hints, "no model was asked; ANTHROPIC_API_KEY, OPENAI_API_KEY or --model ollama/MODEL add one")
		}
		return hints
	}
	folders := "to search your own documents: marchwarden library add DIR"
	if slices.ContainsFunc(start.Library, func(name string) bool { return !strings.HasPrefix(name, corpus.Name) }) {
		folders = "to search more folders: marchwarden library add DIR; --embedded adds our own"
	}
	return []string{folders, "to search the web: marchwarden ask --researcher web; see marchwarden doctor"}
}

// optionalInt is a flag for a whole number that may be left out.
type optionalInt struct{ v *int }

func (i *optionalInt) String() string {
	if i.v == nil {
		return ""
	}
	return strconv.Itoa(*i.v)
}

func (i *optionalInt) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		return err // flagError words it
	}
	i.v = &n
	return nil
}

func (i *optionalInt) Type() string { return "number" }
