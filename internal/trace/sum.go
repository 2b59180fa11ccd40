package trace

import (
	"bytes"
	"errors"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// formatSums is the first format whose lines have checksums.
const formatSums = 2

const lineTag = "marchwarden/trace-line/v2"

// withSum appends the checksum to a line that follows one with the checksum before.
func withSum(before string, line []byte) (whole []byte, sum string) {
	return durable.SealLine(line, lineTag, before)
}

// hasSum reports whether a line ends with a checksum, right or wrong.
func hasSum(line []byte) bool {
	_, sum, _ := durable.CheckLine(bytes.TrimSuffix(line, []byte("\n")))
	return sum != ""
}

// checkSum holds a line against the checksum at its end, and returns that and what
// stands before it.
func checkSum(before string, line []byte) (body []byte, sum string, err error) {
	body, sum, err = durable.CheckLine(bytes.TrimSuffix(line, []byte("\n")), lineTag, before)
	switch {
	case err != nil:
		return nil, "", errors.New("its checksum does not fit: the line, or the one before it, was changed")
	case sum == "":
		return nil, "", errors.New("it has no checksum")
	}
	return body, sum, nil
}
