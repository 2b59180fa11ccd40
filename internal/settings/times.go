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
