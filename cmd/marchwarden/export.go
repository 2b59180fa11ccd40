package main

import "github.com/spf13/cobra"

func newExport(a *app) *cobra.Command {
	return &cobra.Command{Use: "export", Hidden: true, Args: noArgs, RunE: func(*cobra.Command, []string) error { return nil }}
}
