package main

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// notices are the licences of what is linked into the program. .ci/notices.sh writes them.
//
//go:embed notices.txt.gz
var notices []byte

func newLicenses(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "licenses", Short: "print the licences of what the program contains", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			packed, err := gzip.NewReader(bytes.NewReader(notices))
			if err != nil {
				return marchwarden.Wrap(err, marchwarden.CodeInternal, "read the licences")
			}
			if _, err := io.Copy(a.stdout, packed); err != nil {
				return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print the licences")
			}
			return nil
		},
	}
}
