package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// schemas are the two halves of the contract.
var schemas = map[string]func() json.RawMessage{
	"request": marchwarden.RequestSchema,
	"result":  marchwarden.ResultSchema,
}

func newSchema(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "schema request|result", Short: "print the JSON Schema of a request or a result",
		Example:   "  marchwarden schema result > result.schema.json",
		ValidArgs: []string{"request", "result"},
		Args:      argCount(1, 1, `one argument, "request" or "result"`),
		RunE:      func(_ *cobra.Command, args []string) error { return a.runSchema(args[0]) },
	}
}

func (a *app) runSchema(which string) error {
	schema, ok := schemas[which]
	if !ok {
		return invalid("schema", "", fmt.Sprintf(`must be request or result, not %q`, plaintext.Clip(which, 40)))
	}
	_, err := fmt.Fprintf(a.stdout, "%s\n", schema())
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print the schema")
}
