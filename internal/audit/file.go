package audit

import (
	"fmt"
	"os"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// MaxResultBytes bounds a result read from a file, and what is read from stdin.
const MaxResultBytes = 64 << 20

// ResultFile reads the result that arg names, piped if that is stdin, or gives nil when
// arg is an id.
func ResultFile(arg string, piped []byte) (*marchwarden.Result, error) {
	if _, err := marchwarden.ParseTraceID(arg); err == nil || arg == "last" {
		return nil, nil
	}
	data := piped
	if arg != "-" {
		var err error
		if data, err = readResult(arg); data == nil || err != nil {
			return nil, err
		}
	}
	const hint = "give a trace id, or a file written by 'marchwarden ask --json' or by --out NAME.json"
	res, err := marchwarden.DecodeResult(data)
	if err != nil {
		return nil, &marchwarden.Error{Code: marchwarden.CodeOf(err), Field: "FILE", Message: fmt.Sprintf("%q", arg), Err: err, Hint: hint}
	}
	if res.Answer == "" && len(res.Citations) == 0 && !res.TraceID.Valid() {
		return nil, settings.Invalid("FILE", hint, fmt.Sprintf("%q holds no result", arg))
	}
	return res, nil
}

// readResult reads the file of that name; nil when arg is neither a file nor the name
// of one.
func readResult(arg string) ([]byte, error) {
	info, err := os.Stat(arg)
	if (err != nil || !info.Mode().IsRegular()) && !strings.HasSuffix(arg, ".json") {
		return nil, nil
	}
	f, err := durable.OpenRegular(arg)
	if err != nil {
		return nil, settings.Invalid("FILE", "", fmt.Sprintf("%q cannot be read: %s", arg, durable.Cause(err)))
	}
	defer f.Close()
	return settings.ReadLimited(f, MaxResultBytes, "result")
}
