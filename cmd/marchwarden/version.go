package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

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
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "print the version of the program and of the contract", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return printJSON(a.forPrograms(), thisVersion())
			}
			return a.print("%s\n", thisVersion())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
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

var schemas = map[string]func() json.RawMessage{
	"request": marchwarden.RequestSchema,
	"result":  marchwarden.ResultSchema,
}

func newSchema(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "schema request|result", Short: "print the JSON Schema of a request or a result",
		ValidArgs: []string{"request", "result"},
		Args:      argCount(1, 1, `one argument, "request" or "result"`),
		RunE: func(_ *cobra.Command, args []string) error {
			schema, ok := schemas[args[0]]
			if !ok {
				return invalid("schema", "", fmt.Sprintf(`must be request or result, not %q`, plaintext.Clip(args[0], 40)))
			}
			return a.print("%s\n", schema())
		},
	}
}
