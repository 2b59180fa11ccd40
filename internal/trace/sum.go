package trace

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
)

// formatSums is the first format whose lines have checksums.
const formatSums = 2

// sumBytes is how much of a SHA-256 a line carries: it finds damage, it proves
// nothing against somebody who writes the file anew. A signed bundle does that.
const sumBytes = 8

const (
	sumKey = `,"sum":"`
	sumEnd = "\"}\n"
	sumLen = len(sumKey) + 2*sumBytes + len(sumEnd)
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
	if string(tail[len(sumKey):len(sumKey)+2*sumBytes]) != sum {
		return "", errors.New("its checksum does not fit: the line, or the one before it, was changed")
	}
	return sum, nil
}

// sumOf is the checksum of a line that follows one with the checksum before.
func sumOf(before string, body []byte) string {
	h := sha256.New()
	for _, part := range [][]byte{[]byte("marchwarden/trace-line/v2"), []byte(before), body} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil)[:sumBytes])
}
