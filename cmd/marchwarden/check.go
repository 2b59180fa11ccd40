package main

import "github.com/spf13/cobra"

func newCheck(a *app) *cobra.Command {
	return &cobra.Command{Use: "check", Hidden: true, Args: noArgs, RunE: func(*cobra.Command, []string) error { return nil }}
}
