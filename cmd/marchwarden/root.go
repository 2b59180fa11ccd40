package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// welcome is what the program says when it is called by its name alone.
const welcome = `Ask a question, and get an answer in which every sentence leads to its source.

  marchwarden ask "What are ideal crops for a garden in Utah?"
  marchwarden library add ~/notes   search your own documents from now on
  marchwarden show last             each sentence, and its passage in its place
  marchwarden ui                    the same on a page in your browser
  marchwarden doctor                what is on, and how to switch on the rest

all commands: marchwarden help
all about one: marchwarden help ask
one subject: marchwarden help folders (or databases, models, web, privacy, …)
`

// newRoot builds the tree of commands. Building it opens and reads nothing.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "marchwarden",
		Short:         "research with citations that can be checked",
		Version:       thisVersion().String(),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if f := cmd.Flags().Lookup("json-events"); f != nil && f.Value.String() == "true" {
				a.reader = program
			}
			a.flags = settingFlags(cmd.Flags())
			return notBlank(cmd)
		},
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("{{.Version}}\n")
	settingFlag(root.PersistentFlags(), "log-format", settings.LogFormat, "`FORMAT` of logs on stderr: text or json; MARCHWARDEN_DEBUG=1 logs more")
	group(root,
		newAsk(a), newUI(a), newShow(a), newReplay(a), newVerify(a), newTraces(a), newCosts(a), newDoctor(a),
		newResume(a), newDrift(a), newWatched(a), newExport(a), newImport(a), newCheck(a), newGc(a),
		newSubmit(a), newHub(a), newWorker(a), newCluster(a), newFollow(a), newCancel(a),
		newLibrary(a), newResearchers(a), newSchema(a), newServe(a), newToken(a), newMCP(a), newVersion(a), newLicenses(a), newMan(),
	)
	root.RunE = func(*cobra.Command, []string) error { return a.print("%s", welcome) }
	root.InitDefaultCompletionCmd() // cobra's own command, held to our exit codes
	completion, _, _ := root.Find([]string{"completion"})
	for _, shell := range group(completion).Commands() {
		shell.Args = noArgs
	}
	root.SetHelpCommand(newHelp(a, root))
	finish(root)
	return root
}

// named is a flag's value with a name for it in help texts.
type named struct {
	pflag.Value
	name string
}

func (n named) Type() string { return n.name }

// finish ends the help of every command with its exit codes, and takes the name
// of a flag's value out of its usage, where shells would show the quotes.
func finish(cmd *cobra.Command) {
	nameValue := func(f *pflag.Flag) {
		if strings.Contains(f.Usage, "`") {
			name, usage := pflag.UnquoteUsage(f)
			f.Value, f.Usage = named{f.Value, name}, usage
			if f.DefValue == "[]" { // an empty list, which a plain value would show
				f.DefValue = ""
			}
		}
	}
	cmd.Flags().VisitAll(nameValue)
	cmd.PersistentFlags().VisitAll(nameValue)
	if cmd.Long == "" {
		cmd.Long, cmd.Example = helpText(cmd)
	}
	if !strings.Contains(cmd.Long, "EXIT STATUS") {
		cmd.Long = strings.TrimRight(cmd.Long, "\n") + usualExits
	}
	for _, sub := range cmd.Commands() {
		finish(sub)
	}
}

// group makes a command one that only holds others.
func group(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.Args, cmd.RunE = needCommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(subs...)
	return cmd
}

// work is what a command does, once the settings are read.
type work func(ctx context.Context, c *settings.Settings, args []string) error

// run reads the settings for the work of a command.
func (a *app) run(do work) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.loadConfig()
		if err != nil {
			return err
		}
		return do(cmd.Context(), c, args)
	}
}

// verb is a command: its words, the arguments that it takes, and its work.
func (a *app) verb(use, short string, args cobra.PositionalArgs, do work) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: args, RunE: a.run(do)}
}

// listing is a command that can print JSON, as app.json says.
func (a *app) listing(use, short string, args cobra.PositionalArgs, do work) *cobra.Command {
	cmd := a.verb(use, short, args, do)
	cmd.Flags().BoolVar(&a.json, "json", false, "print JSON")
	return cmd
}

// needCommand is the Args of a command that only holds others.
func needCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "run '" + cmd.CommandPath() + " --help' for the commands there are"
	if near := nearest(args[0], namesOf(cmd.Commands())); near != "" {
		hint = "did you mean '" + cmd.CommandPath() + " " + near + "'?"
	} else if !cmd.HasParent() && len(args) > 1 || strings.Contains(args[0], " ") {
		hint = `to ask a question: marchwarden ask "…"`
	}
	return invalid("", hint, fmt.Sprintf("unknown command %q", plaintext.Clip(args[0], 60)))
}

// flagError gives a wrong flag its exit code and a hint.
func flagError(cmd *cobra.Command, err error) error {
	hint := "run '" + cmd.CommandPath() + " --help' for the flags there are"
	if unknown, is := errors.AsType[*pflag.NotExistError](err); is {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := nearest(unknown.GetSpecifiedName(), names); near != "" {
			hint = "did you mean '--" + near + "'?"
		}
	}
	value, ofFlag := errors.AsType[*pflag.InvalidValueError](err)
	number, ofNumber := errors.AsType[*strconv.NumError](err)
	if outside, is := errors.AsType[outOfRange](err); ofFlag && is {
		return invalid("--"+value.GetFlag().Name, "", outside.Error())
	}
	if !ofFlag || !ofNumber {
		return invalid("", hint, err.Error())
	}
	want := "a whole number"
	switch {
	case number.Func == "ParseBool":
		want = "true or false"
	case number.Func == "ParseFloat":
		want = "a number"
	case errors.Is(err, strconv.ErrRange):
		want = "a smaller whole number"
	}
	return invalid("--"+value.GetFlag().Name, "", fmt.Sprintf("must be %s, not %q", want, plaintext.Clip(value.GetValue(), 40)))
}

// settingFlag adds a flag that says a setting.
func settingFlag(f *pflag.FlagSet, name, setting, usage string) {
	if settings.Of(setting).Several() {
		f.StringArray(name, nil, usage)
	} else {
		f.String(name, "", usage)
	}
	f.Lookup(name).Annotations = map[string][]string{"setting": {setting}}
}

// settingFlags are the flags that were given and say settings.
func settingFlags(f *pflag.FlagSet) map[string]settings.Flag {
	said := map[string]settings.Flag{}
	f.Visit(func(f *pflag.Flag) {
		text := f.Value.String()
		if list, ok := f.Value.(pflag.SliceValue); ok {
			text = strings.Join(list.GetSlice(), ",")
		}
		if setting := f.Annotations["setting"]; setting != nil && text != "" {
			said[setting[0]] = settings.Flag{Name: "--" + f.Name, Text: text}
		}
	})
	return said
}

// count is a flag for a whole number within bounds; 0 is one that was left out.
type count struct {
	to          *int
	least, most int
}

// outOfRange says that a number is not within its bounds.
type outOfRange string

func (o outOfRange) Error() string { return string(o) }

func (c count) String() string {
	if c.to == nil || *c.to == 0 {
		return ""
	}
	return strconv.Itoa(*c.to)
}

func (c count) Set(s string) error {
	n, err := strconv.Atoi(s)
	switch {
	case err != nil:
		return err // flagError words it
	case n < c.least || n > c.most:
		return outOfRange(fmt.Sprintf("must be from %d to %d, not %d", c.least, c.most, n))
	}
	*c.to = n
	return nil
}

func (c count) Type() string { return "number" }

func countFlag(f *pflag.FlagSet, to *int, name string, usual, least, most int, usage string) {
	*to = usual
	f.Var(count{to, least, most}, name, usage)
}

// option is a flag that says who is asked, with what.
type option struct {
	usage  string
	to     func(o *network.Options) any // where its value is
	most   int                          // of a number
	values []string                     // that a shell completes
}

// workOptions are the names of those that say with what researchers work, wherever they do.
var workOptions = []string{"online", "db", "allow-samples", "model", "library", "embedded", "search"}

// options are all of them, by their names: each has one spelling in all commands.
var options = map[string]option{
	"researcher":    {usage: "ask just the researcher `NAME`: files, database, web, arxiv or one of config.yaml (default pi, the investigator)", to: func(o *network.Options) any { return &o.Researcher }, values: append(slices.Clone(settings.Builtin), settings.PI)},
	"researchers":   {usage: "`LIST` of the researchers that the investigator may send", to: func(o *network.Options) any { return &o.Researchers }, values: settings.Builtin},
	"allow-egress":  {usage: "`LIST` of researchers whose findings others may be told, such as files,database", to: func(o *network.Options) any { return &o.AllowEgress }},
	"parallel":      {usage: "ask at most `N` researchers at once (default 4)", to: func(o *network.Options) any { return &o.Parallel }, most: network.MaxParallel},
	"max-rihlas":    {usage: "ask researchers at most `N` times for one question (default by depth: 4, 8 or 16)", to: func(o *network.Options) any { return &o.MaxRihlas }, most: network.MaxRihlas},
	"timeout":       {usage: "end a research after this `TIME`, such as 90s (default 10m where the network is used, else none)", to: func(o *network.Options) any { return &o.Timeout }},
	"isolate":       {usage: "run each built-in researcher in a process of its own", to: func(o *network.Options) any { return &o.Isolate }},
	"online":        {usage: "let questions leave this machine: ask the web and arXiv, too", to: func(o *network.Options) any { return &o.Online }},
	"db":            {usage: "ask the database at `URL`: postgres://…, mysql://…, or an SQLite file; read-only", to: func(o *network.Options) any { return &o.DB }},
	"allow-samples": {usage: "show the model a few values of the database's tables before it asks for any", to: func(o *network.Options) any { return &o.AllowSamples }},
	"model":         {usage: "language `MODEL` that plans and writes, such as anthropic/claude-sonnet-5-5 or ollama/qwen3; extractive for none", to: func(o *network.Options) any { return &o.Model }},
	"library":       {usage: "search the folder `DIR`; may be given several times", to: func(o *network.Options) any { return &o.Library }},
	"embedded":      {usage: "search the embedded library too", to: func(o *network.Options) any { return &o.Embedded }},
	"search":        {usage: "search the web by this `LIST` of engines: tavily, brave, searxng, wikipedia; implies --online", to: func(o *network.Options) any { return &o.Search }, values: network.EngineNames()},
}

// optionFlags gives a command the flags of options.
func optionFlags(cmd *cobra.Command, o *network.Options, names ...string) {
	f := cmd.Flags()
	for _, name := range names {
		opt := options[name]
		switch to := opt.to(o).(type) {
		case *string:
			f.StringVar(to, name, "", opt.usage)
		case *bool:
			f.BoolVar(to, name, false, opt.usage)
		case *int:
			countFlag(f, to, name, 0, 1, opt.most, opt.usage)
		case *[]string:
			if name == "library" { // a path may hold a comma
				f.StringArrayVar(to, name, nil, opt.usage)
			} else {
				f.StringSliceVar(to, name, nil, opt.usage)
			}
		}
		if opt.values != nil {
			complete(cmd, name, opt.values...)
		}
	}
}

// notBlank refuses flags that were given with nothing: such a value comes from a
// variable that is not set, and is not meant to be the default.
func notBlank(cmd *cobra.Command) error {
	for _, name := range []string{"researcher", "researchers", "db", "allow-egress", "follow", "out", "format", "status", "http", "max-wall", "public-url", "allowed-hosts", "allowed-origins",
		"engine", "file", "priority", "tls-cert", "tls-key", "oauth-issuer", "oauth-audience", "scope", "expires",
		"listen", "store", "max-store", "keys", "name", "tls-ca", "cluster", "cluster-listen", "cluster-secret-file", "cluster-cert", "cluster-key", "cluster-ca", "replicas", "lease", "keep-log", "keep-task", "keep-done", "blobs", "routes",
		"limit", "probe", "drain", "role"} {
		f := cmd.Flags().Lookup(name)
		if f != nil && f.Changed && strings.Trim(f.Value.String(), "[] \t") == "" {
			return invalid("--"+name, "leave it out if there is none", "must not be blank")
		}
	}
	return nil
}

func namesOf(commands []*cobra.Command) (names []string) {
	for _, c := range commands {
		if c.IsAvailableCommand() || c.Name() == "help" {
			names = append(names, c.Name())
		}
	}
	return names
}

// nearest is a name that is at most two changes away from what was typed, or begins like it, the
// nearest first; "" if there is none.
func nearest(typed string, names []string) string {
	all := &cobra.Command{}
	for _, name := range names {
		all.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	for all.SuggestionsMinimumDistance = range 3 {
		if found := all.SuggestionsFor(typed); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

// argCount is the Args of a command that takes from least to most arguments.
func argCount(least, most int, want string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		return invalid("", "run '"+cmd.CommandPath()+" --help' for examples", fmt.Sprintf("%s takes %s; %d given", cmd.CommandPath(), want, len(args)))
	}
}

func noArgs(cmd *cobra.Command, args []string) error {
	return argCount(0, 0, "no arguments")(cmd, args)
}

// complete lets the shell complete the values of a flag.
func complete(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // unreachable: the flag was defined just before
	}
}
