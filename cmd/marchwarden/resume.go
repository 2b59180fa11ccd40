package main

import "github.com/spf13/cobra"

func newResume(a *app) *cobra.Command {
	return &cobra.Command{Use: "resume", Hidden: true, Args: noArgs, RunE: func(*cobra.Command, []string) error { return nil }}
}
