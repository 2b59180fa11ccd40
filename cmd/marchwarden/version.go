package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// versionInfo is the form of 'version --json'. Fields are only ever added.
type versionInfo struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Contract string `json:"contract"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersion(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "print the version of the program and of the contract", Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return a.runVersion(asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) runVersion(asJSON bool) error {
	v := versionInfo{
		Name: "marchwarden", Version: programVersion(), Contract: marchwarden.ContractVersion,
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if asJSON {
		return printJSON(a.forPrograms(), v)
	}
	_, err := fmt.Fprintf(a.stdout, "%s %s (contract %s, %s, %s)\n", v.Name, v.Version, v.Contract, v.Go, v.Platform)
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print the version")
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
