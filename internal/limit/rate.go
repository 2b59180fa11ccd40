// Package limit shares what a provider allows among all users of one engine: requests a second,
// tokens a minute, money a day. It owns the rules that people write, the arithmetic, and the
// waiting; where the shared state is kept is a Store, of which this package has one of files.
//
// There are three kinds of rate, by their span:
//
//   - A rate per second is paced. Every use has a slot, a moment on the clock that all
//     share, and slots are a little more than 1/N of a second apart. A caller that is too
//     late for a slot drops it, so that a process that was stopped does not send a bunch.
//     In no second, wherever it begins, are there more than N uses as far as they arrive
//     within 60 ms of their slots, and hardly more if some arrive later.
//   - A rate per minute or hour may be used at once, but in no minute or hour, wherever
//     it begins, is there more than N.
//   - A rate per day is counted from midnight to midnight, UTC. What does not fit today
//     fails at once and says when the day is over.
//
// It knows no provider and makes no request: that is for the packages that wrap models,
// search engines and pages.
package limit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Rate is how much may be used in how long. The zero Rate is none.
type Rate struct {
	N   float64       // in whole uses; of money in millionths of a dollar
	Per time.Duration // time.Second, time.Minute, time.Hour or Day
	// Money says that N is money, for people.
	Money bool
}

// Day is the span of a rate that is counted from midnight to midnight, UTC.
const Day = 24 * time.Hour

// Millionths is how many uses of a limit of money a dollar is.
const Millionths = 1_000_000

// mostN keeps sums of uses far from where they overflow.
const mostN = 1e15

// spans are the words for how long, the first of each for people.
var spans = []struct {
	per   time.Duration
	words []string
}{
	{time.Second, []string{"s", "sec", "second"}},
	{time.Minute, []string{"m", "min", "minute"}},
	{time.Hour, []string{"h", "hour"}},
	{Day, []string{"day", "d"}},
}

// ParseRate reads a rate such as "50/s", "400000/m", "1000/h" or "20/day". An error is
// CodeInvalid and says what is wrong.
func ParseRate(text string) (Rate, error) {
	bad := func(format string, args ...any) (Rate, error) {
		return Rate{}, &marchwarden.Error{Code: marchwarden.CodeInvalid, Message: fmt.Sprintf("the rate %.40q ", text) + fmt.Sprintf(format, args...),
			Hint: "for example 50/s, 400000/m, 1000/h or 20/day"}
	}
	amount, span, ok := strings.Cut(text, "/")
	if !ok {
		return bad("does not say in how long")
	}
	n, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSpace(amount), "_", ""), 64)
	if err != nil {
		return bad("does not begin with a number")
	}
	if !(n > 0) || n > mostN {
		return bad("must be above 0 and at most %.0f", mostN)
	}
	span = strings.ToLower(strings.TrimSpace(span))
	for _, s := range spans {
		if slices.Contains(s.words, span) {
			return Rate{N: n, Per: s.per}, nil
		}
	}
	return bad("must be per s, m, h or day")
}

// String is the rate as ParseRate reads it, with a dollar sign before money.
func (r Rate) String() string {
	word := r.Per.String()
	for _, s := range spans {
		if s.per == r.Per {
			word = s.words[0]
		}
	}
	return r.amount(r.N) + "/" + word
}

// amount is an amount of it, for people.
func (r Rate) amount(n float64) string {
	if r.Money {
		return "$" + strconv.FormatFloat(math.Ceil(n/Millionths*1e4)/1e4, 'f', -1, 64)
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// What may be limited. Requests are calls, whatever is in them.
const (
	Requests = "requests"
	Tokens   = "tokens"
	Money    = "money"
)

// Key names a limit: "anthropic/requests".
func Key(subject, measure string) string { return subject + "/" + measure }

// Rules say what is limited. The zero Rules limit nothing. They are safe for concurrent
// use.
type Rules struct{ list []rule }

type rule struct {
	subject, measure string
	rate             Rate
}

// ParseRules reads rules, each a subject, a measure and a rate: "anthropic requests
// 50/s", "anthropic tokens 400000/m", "anthropic money 20/day" (in dollars), "host:*
// requests 2/s". A star at the end of a subject stands for all subjects that begin so
// and have no rule of their own; each of them has its own limit. An error is CodeInvalid
// and names the rule.
func ParseRules(texts []string) (Rules, error) {
	var r Rules
	for _, text := range texts {
		one, err := parseRule(text)
		if err != nil {
			return Rules{}, &marchwarden.Error{Code: marchwarden.CodeInvalid, Message: fmt.Sprintf("the limit %.80q", text), Hint: marchwarden.HintOf(err), Err: err}
		}
		for _, o := range r.list {
			if o.subject == one.subject && o.measure == one.measure {
				return Rules{}, marchwarden.Errorf(marchwarden.CodeInvalid, "the limit %.80q: there is another of the %s of %s already", text, one.measure, one.subject)
			}
		}
		r.list = append(r.list, one)
	}
	// The longest subject first: it says most.
	slices.SortStableFunc(r.list, func(a, b rule) int {
		return cmp.Or(cmp.Compare(len(b.subject), len(a.subject)), cmp.Compare(a.subject, b.subject), cmp.Compare(a.measure, b.measure))
	})
	return r, nil
}

func parseRule(text string) (rule, error) {
	words := strings.Fields(text)
	if len(words) != 3 {
		return rule{}, &marchwarden.Error{Code: marchwarden.CodeInvalid, Message: "must be a subject, a measure and a rate", Hint: `for example "anthropic requests 50/s" or "host:* requests 2/s"`}
	}
	subject, measure := strings.ToLower(words[0]), strings.ToLower(words[1])
	if strings.ContainsFunc(subject, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return rule{}, marchwarden.Errorf(marchwarden.CodeInvalid, "the subject has a character that cannot be shown")
	}
	if star := strings.IndexByte(subject, '*'); star >= 0 && star != len(subject)-1 || strings.Contains(subject, "/") {
		return rule{}, marchwarden.Errorf(marchwarden.CodeInvalid, "the subject may have a star at its end and no slash")
	}
	rate, err := ParseRate(words[2])
	if err != nil {
		return rule{}, err
	}
	switch measure {
	case Money:
		if rate.Per != Day {
			return rule{}, marchwarden.Errorf(marchwarden.CodeInvalid, "money is limited by the day, such as 20/day")
		}
		rate.N, rate.Money = math.Floor(rate.N*Millionths), true
	case Tokens:
		if rate.Per == time.Second {
			return rule{}, marchwarden.Errorf(marchwarden.CodeInvalid, "tokens are limited by the minute, the hour or the day, as one call needs thousands at once")
		}
	case Requests:
	default:
		return rule{}, marchwarden.Errorf(marchwarden.CodeInvalid, "the measure must be %s, %s or %s, not %.40q", Requests, Tokens, Money, measure)
	}
	if rate.N < 1 && rate.Per != time.Second {
		return rule{}, marchwarden.Errorf(marchwarden.CodeInvalid, "it allows less than one in all that time")
	}
	return rule{subject: subject, measure: measure, rate: rate}, nil
}

// For is the rate of a key such as "host:example.org/requests", by the rule of its own, or else that
// of the longest beginning with a star; false if it has no limit.
func (r Rules) For(key string) (Rate, bool) {
	cut := strings.LastIndexByte(key, '/')
	if cut < 0 {
		return Rate{}, false
	}
	subject, measure := key[:cut], key[cut+1:]
	var wide rule
	for _, one := range r.list {
		if one.measure != measure {
			continue
		}
		if one.subject == subject {
			return one.rate, true
		}
		if begin, star := strings.CutSuffix(one.subject, "*"); star && strings.HasPrefix(subject, begin) && wide.subject == "" {
			wide = one
		}
	}
	return wide.rate, wide.subject != ""
}
