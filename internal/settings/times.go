package settings

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// ParseSpan reads a time such as 90s, or says what is wrong.
func ParseSpan(v string) (d time.Duration, problem string) {
	read, problem := Setting{Kind: span}.Read([]string{v}, nil)
	if problem == "" {
		d, _ = time.ParseDuration(read[0]) // read has parsed it
	}
	return d, problem
}

// ParseTerm reads how long something lasts: whole days such as 90d, or a time such as 12h, or says
// what is wrong.
func ParseTerm(v string) (d time.Duration, problem string) {
	const mostDays = 36500
	text := strings.TrimSpace(v)
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		d = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || d < time.Second || d > mostDays*24*time.Hour {
		return 0, fmt.Sprintf("must be a time such as 90d or 12h, 1s to %dd, not %q", mostDays, plaintext.Clip(v, 40))
	}
	return d, ""
}

// ParseSize reads a number of bytes with a unit: kB, MB, GB and TB are powers of a thousand, KiB, MiB,
// GiB and TiB powers of 1,024. Or it says what is wrong.
func ParseSize(v string) (bytes int64, problem string) {
	text := strings.ToLower(strings.TrimSpace(v))
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz ")
	unit, ok := map[string]float64{
		"": 1, "b": 1, "k": 1e3, "kb": 1e3, "m": 1e6, "mb": 1e6, "g": 1e9, "gb": 1e9, "t": 1e12, "tb": 1e12,
		"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
	}[strings.TrimSpace(text[len(digits):])]
	n, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || !(n*unit >= 1 && n*unit < 1<<62) {
		return 0, fmt.Sprintf("must be a number of bytes with a unit, such as 500MB or 2GB, not %q", plaintext.Clip(v, 40))
	}
	return int64(n * unit), ""
}
