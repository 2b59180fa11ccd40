package network

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// flag is one of those that say who is asked with what.
type flag struct {
	name  string
	names []string             // the researchers that it is for; none for the investigator
	of    func(o *Options) any // where its value is
}

// flagsOf are the flags for some researchers, and flagsOfAll those for each of them.
var (
	flagsOf = []flag{
		{"--library", []string{researcher.FilesName}, func(o *Options) any { return &o.Library }},
		{"--embedded", []string{researcher.FilesName}, func(o *Options) any { return &o.Embedded }},
		{"--online", []string{researcher.WebName, researcher.ArxivName}, func(o *Options) any { return &o.Online }},
		{"--db", []string{database.Name}, func(o *Options) any { return &o.DB }},
		{"--allow-samples", []string{database.Name}, func(o *Options) any { return &o.AllowSamples }},
		{"--search", []string{researcher.WebName}, func(o *Options) any { return &o.Search }},
		{"--researchers", nil, func(o *Options) any { return &o.Researchers }},
		{"--plan", nil, func(o *Options) any { return &o.PlanOnly }},
		{"--clarify", nil, func(o *Options) any { return &o.Ask }},
		{"--parallel", nil, func(o *Options) any { return &o.Parallel }},
		{"--max-rihlas", nil, func(o *Options) any { return &o.MaxRihlas }},
		{"--allow-egress", nil, func(o *Options) any { return &o.AllowEgress }},
	}
	flagsOfAll = []flag{
		{"--model", nil, func(o *Options) any { return &o.Model }},
		{"--isolate", nil, func(o *Options) any { return &o.Isolate }},
	}
)

func (f flag) given(o Options) bool { return !reflect.ValueOf(f.of(&o)).Elem().IsZero() }

// isFor reports whether the flag is for one of the researchers.
func (f flag) isFor(names ...string) bool {
	return slices.ContainsFunc(f.names, func(name string) bool { return slices.Contains(names, name) })
}

// arguments are the flag as a command line has it.
func (f flag) arguments(o Options) (args []string) {
	switch v := f.of(&o).(type) {
	case *string:
		if *v != "" {
			args = []string{f.name, *v}
		}
	case *bool:
		if *v {
			args = []string{f.name}
		}
	case *[]string:
		for _, one := range *v {
			args = append(args, f.name, one)
		}
	}
	return args
}

// flagsFor refuses flags that are for a researcher who is not asked.
func (o Options) flagsFor(c *settings.Settings, name string) error {
	for _, f := range flagsOf {
		asked := f.isFor(name)
		if name == settings.PI {
			asked = len(f.names) == 0 || len(o.Researchers) == 0 || slices.ContainsFunc(f.names, o.wants)
		}
		switch {
		case !f.given(o) || asked:
		case name == settings.PI:
			return settings.Invalid(f.name, "add it to --researchers", "is for the researcher "+f.names[0]+", who is not asked")
		case len(f.names) == 0:
			return settings.Invalid(f.name, "leave out --researcher to let all of them work together", "is not for the researcher "+name)
		default:
			return settings.Invalid(f.name, "use --researcher "+f.names[0]+", or leave it out", "is not for the researcher "+name)
		}
	}
	return nil
}

// WorkFlag is a flag that was given and says with what researchers work; "" if there is none.
func (o Options) WorkFlag() string {
	ofSome := slices.DeleteFunc(slices.Clone(flagsOf), func(f flag) bool { return len(f.names) == 0 })
	for _, f := range append(ofSome, flagsOfAll...) {
		if f.given(o) {
			return f.name
		}
	}
	return ""
}

// Narrowed leaves out what is for researchers that are not among those named: settings and
// flags of a program may bring in a library that one question is not asked of.
func (o Options) Narrowed(names []string) Options {
	for _, f := range flagsOf {
		if len(f.names) > 0 && !f.isFor(names...) {
			reflect.ValueOf(f.of(&o)).Elem().SetZero()
		}
	}
	return o
}

// PartFor is what of an investigation's options is for one of its members.
func (o Options) PartFor(name string) Options {
	of := o.Narrowed([]string{name})
	return Options{
		Choice: marchwarden.Choice{Researcher: name, Model: o.Model, Library: of.Library, Embedded: of.Embedded, Search: of.Search, DB: of.DB, AllowSamples: of.AllowSamples},
		PartOf: true, Timeout: o.Timeout, Log: o.Log, Warn: o.Warn,
	}
}

// choiceOf is the choice of a run whose flags an earlier version recorded, as --name=value or, for a
// switch, --name.
func choiceOf(flags []string) marchwarden.Choice {
	var o Options
	known := append(slices.Concat(flagsOf, flagsOfAll), flag{"--researcher", nil, func(o *Options) any { return &o.Researcher }})
	for _, said := range flags {
		name, value, _ := strings.Cut(said, "=")
		i := slices.IndexFunc(known, func(f flag) bool { return f.name == name })
		if i < 0 {
			continue
		}
		switch v := known[i].of(&o).(type) {
		case *string:
			*v = value
		case *bool:
			*v = value != "false"
		case *int:
			*v, _ = strconv.Atoi(value)
		case *[]string:
			if name == "--library" { // a path may hold a comma
				*v = append(*v, value)
			} else {
				*v = settings.SplitWords(value)
			}
		}
	}
	return o.Choice
}
