package main

import (
	"slices"

	"github.com/spf13/cobra"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

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
