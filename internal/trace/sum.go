package trace

import (
	"bytes"
	"errors"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// formatSums is the first format whose lines have checksums.
const formatSums = 2

const (
	sumKey = `,"sum":"`
	sumEnd = "\"}\n"
	sumLen = len(sumKey) + durable.SumDigits + len(sumEnd)
)

// withSum appends the checksum to a line, which ends in "}" and a newline.
func withSum(before string, line []byte) (whole []byte, sum string) {
	body := line[:len(line)-len("}\n")]
	sum = sumOf(before, body)
	return bytes.Join([][]byte{body, []byte(sumKey), []byte(sum), []byte(sumEnd)}, nil), sum
}

// hasSum reports whether a line ends with a checksum, right or wrong.
func hasSum(line []byte) bool {
	tail := line[max(0, len(line)-sumLen):]
	return bytes.HasPrefix(tail, []byte(sumKey)) && bytes.HasSuffix(tail, []byte(sumEnd))
}

// checkSum holds a line against the checksum at its end, and returns that.
func checkSum(before string, line []byte) (string, error) {
	if !hasSum(line) {
		return "", errors.New("it has no checksum")
	}
	body, tail := line[:len(line)-sumLen], line[len(line)-sumLen:]
	sum := sumOf(before, body)
	if string(tail[len(sumKey):len(sumKey)+durable.SumDigits]) != sum {
		return "", errors.New("its checksum does not fit: the line, or the one before it, was changed")
	}
	return sum, nil
}

// sumOf is the checksum of a line that follows one with the checksum before. It finds
// damage; it proves nothing against somebody who writes the file anew. A signed bundle
// does that.
func sumOf(before string, body []byte) string {
	return durable.Sum([]byte("marchwarden/trace-line/v2"), []byte(before), body)
}
