package main

import "github.com/spf13/cobra"

func newDrift(a *app) *cobra.Command {
	return &cobra.Command{Use: "drift", Hidden: true, Args: noArgs, RunE: func(*cobra.Command, []string) error { return nil }}
}
