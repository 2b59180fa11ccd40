package main

import "github.com/spf13/cobra"

func newGc(a *app) *cobra.Command {
	return &cobra.Command{Use: "gc", Hidden: true, Args: noArgs, RunE: func(*cobra.Command, []string) error { return nil }}
}
