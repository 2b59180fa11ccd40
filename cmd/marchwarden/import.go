package main

import "github.com/spf13/cobra"

func newImport(a *app) *cobra.Command {
	return &cobra.Command{Use: "import", Hidden: true, Args: noArgs, RunE: func(*cobra.Command, []string) error { return nil }}
}
