package main

import (
	"bytes"
	"compress/gzip"
	"embed"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// helpFiles are the help texts: one for each command, by its words with dashes, and one for each topic.
//
//go:embed help/*.txt help/topics/*.txt
var helpFiles embed.FS

// helpText is the help of a command and its examples; without a file it is the short one.
func helpText(cmd *cobra.Command) (long, examples string) {
	name := strings.TrimPrefix(strings.ReplaceAll(cmd.CommandPath(), " ", "-"), "marchwarden-")
	text, _ := helpFiles.ReadFile("help/" + name + ".txt") // none is no error
	long, examples, _ = strings.Cut(string(text), "EXAMPLES\n")
	if long = strings.TrimSpace(long); long == "" {
		long = strings.ToUpper(cmd.Short[:1]) + cmd.Short[1:] + "."
	}
	return long, strings.TrimRight(examples, "\n")
}

// usualExits ends the help of a command that says nothing else of its exit codes.
const usualExits = `

EXIT STATUS
  0    done
  1    failed
  2    wrong usage or bad input
  130  interrupted`

// topics are the names of the short pages on one subject each.
func topics() (names []string) {
	files, _ := helpFiles.ReadDir("help/topics") // it is part of this program
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".txt"))
	}
	return names
}

func topic(name string) string {
	text, _ := helpFiles.ReadFile("help/topics/" + name + ".txt")
	return string(text)
}

func newHelp(a *app, root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [command | topic]",
		Short: "explain a command or a topic",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return topics(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 && slices.Contains(topics(), args[0]) {
				return a.print("%s", topic(args[0]))
			}
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				hint := "topics: " + strings.Join(topics(), ", ") + "; 'marchwarden help' lists the commands"
				if near := nearest(args[0], append(namesOf(root.Commands()), topics()...)); near != "" {
					hint = "did you mean 'marchwarden help " + near + "'?"
				}
				return invalid("", hint, fmt.Sprintf("there is no command and no topic %q", plaintext.Clip(strings.Join(args, " "), 60)))
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

// newMan writes manual pages, for those who package the program.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "write the manual pages into a folder", Hidden: true, Args: argCount(1, 1, "one folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			pages := map[string]string{}
			manPages(cmd.Root(), pages)
			for _, name := range topics() {
				title, text, _ := strings.Cut(topic(name), "\n")
				pages["marchwarden-"+name+".7"] = manHead("marchwarden-"+name, "7", title) + manText("DESCRIPTION", text)
			}
			err := os.MkdirAll(args[0], 0o755)
			for name, page := range pages {
				if err == nil {
					err = os.WriteFile(filepath.Join(args[0], name), []byte(page), 0o644)
				}
			}
			return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write the manual pages")
		},
	}
}

func manPages(cmd *cobra.Command, pages map[string]string) {
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	page := manHead(name, "1", cmd.Short) + manText("SYNOPSIS", cmd.UseLine()) + manText("DESCRIPTION", cmd.Long)
	cmd.InitDefaultHelpFlag()
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		if !strings.Contains(page, ".SH OPTIONS") {
			page += ".SH OPTIONS\n"
		}
		page += ".TP\n\\fB" + roff("--"+f.Name) + "\\fR " + roff(strings.TrimPrefix(f.Value.Type(), "bool")) + "\n" + roff(f.Usage) + "\n"
	})
	if cmd.Example != "" {
		page += manText("EXAMPLES", cmd.Example)
	}
	var also []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			manPages(sub, pages)
			also = append(also, name+"-"+sub.Name()+"(1)")
		}
	}
	if cmd.HasParent() {
		also = append(also, strings.ReplaceAll(cmd.Parent().CommandPath(), " ", "-")+"(1)")
	}
	pages[name+".1"] = page + ".SH SEE ALSO\n" + roff(strings.Join(also, ", ")) + "\n"
}

func manHead(name, section, about string) string {
	return ".TH " + strings.ToUpper(name) + " " + section + " \"\" \"Marchwarden " + programVersion() + "\"\n.SH NAME\n" + roff(name) + " \\- " + roff(about) + "\n"
}

// manText is a section whose lines stay as they are.
func manText(title, text string) string {
	return ".SH " + title + "\n.nf\n" + roff(strings.Trim(text, "\n")) + "\n.fi\n"
}

// roff is a text that roff shows as it reads.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`).Replace(s)
	if strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	return strings.ReplaceAll(s, "\n.", "\n"+`\&.`)
}

// versionInfo is the form of 'version --json'. Fields are only ever added.
type versionInfo struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Contract string `json:"contract"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisVersion() versionInfo {
	return versionInfo{"marchwarden", programVersion(), marchwarden.ContractVersion, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
}

func (v versionInfo) String() string {
	return fmt.Sprintf("%s %s (contract %s, %s, %s)", v.Name, v.Version, v.Contract, v.Go, v.Platform)
}

func newVersion(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "version", Short: "print the version of the program and of the contract", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.json {
				return printJSON(a.forPrograms(), thisVersion())
			}
			return a.print("%s\n", thisVersion())
		},
	}
	cmd.Flags().BoolVar(&a.json, "json", false, "print JSON")
	return cmd
}

// version is set by release builds: -ldflags "-X main.version=1.2.3".
var version string

// programVersion is the released version, or what the build knows of itself.
func programVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return strings.TrimPrefix(info.Main.Version, "v")
}

func newSchema(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "schema request|result", Short: "print the JSON Schema of a request or a result",
		ValidArgs: []string{"request", "result"},
		Args:      argCount(1, 1, `one argument, "request" or "result"`),
		RunE: func(_ *cobra.Command, args []string) error {
			switch args[0] {
			case "request":
				return a.print("%s\n", marchwarden.RequestSchema())
			case "result":
				return a.print("%s\n", marchwarden.ResultSchema())
			}
			return invalid("schema", "", fmt.Sprintf(`must be request or result, not %q`, plaintext.Clip(args[0], 40)))
		},
	}
}

// notices are the licences of what is linked into the program. .ci/notices.sh writes them.
//
//go:embed notices.txt.gz
var notices []byte

func newLicenses(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "licenses", Short: "print the licences of what the program contains", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			packed, err := gzip.NewReader(bytes.NewReader(notices))
			if err == nil {
				_, err = io.Copy(a.stdout, packed)
			}
			return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print the licences")
		},
	}
}
