package submit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// Question is a line of a file of questions.
type Question struct {
	Line    int    // in the file, from one
	ID      string // the author's name for it; "" for none
	Task    marchwarden.TraceID
	Request marchwarden.Request
}

// questionFields are the fields of a line. Others are ignored, with a warning.
var questionFields = []string{"id", "question", "context", "depth", "format", "length", "audience", "instructions", "constraints"}

// The most that a file of questions may be.
const (
	maxQuestionBytes = 1 << 30
	maxNameChars     = 200
)

// Bound gives a question the cap of its cost and the dates of its sources, unless it has its own.
func (q *Question) Bound(by marchwarden.Constraints) error {
	var c marchwarden.Constraints
	if q.Request.Constraints != nil {
		c = *q.Request.Constraints
	}
	c.MaxCostUSD = cmp.Or(c.MaxCostUSD, by.MaxCostUSD)
	if c.Since+c.Until == "" {
		c.Since, c.Until = by.Since, by.Until
	}
	if c != (marchwarden.Constraints{}) {
		q.Request.Constraints = &c
	}
	return q.Request.Validate()
}

// ReadQuestions reads a whole file of questions, one JSON object a line. Errors name the
// line and the field. other are the unknown fields.
func ReadQuestions(r io.Reader, name string) (all []Question, other []string, err error) {
	named := map[string]int{}
	fail := func(n int, err error) error {
		var e *marchwarden.Error
		where := fmt.Sprintf("%s:%d", name, n)
		if errors.As(err, &e) {
			field := where
			if e.Field != "" && e.Field != "request" {
				field += ": " + e.Field
			}
			return settings.Invalid(field, e.Hint, e.Message)
		}
		return settings.Invalid(where, "", err.Error())
	}
	scanErr := durable.ScanLines(io.LimitReader(r, maxQuestionBytes), marchwarden.MaxRequestBytes, func(l durable.Line) {
		if err != nil {
			return
		}
		text := l.Text
		if l.N == 1 {
			text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
		}
		q, unread, wrong := readQuestion(bytes.TrimSpace(text))
		if wrong != nil {
			err = fail(l.N, wrong)
			return
		}
		q.Line = l.N
		if first, twice := named[q.ID]; twice && q.ID != "" {
			err = fail(l.N, settings.Invalid("id", "", fmt.Sprintf("%q is the id of line %d, too", plaintext.Line(q.ID, 60), first)))
			return
		}
		named[q.ID] = l.N
		for _, f := range unread {
			if !slices.Contains(other, f) {
				other = append(other, f)
			}
		}
		all = append(all, q)
	})
	if err == nil && scanErr != nil {
		err = settings.Invalid(name, "", "cannot be read: "+durable.Cause(scanErr))
	}
	if err == nil && len(all) == 0 {
		err = settings.Invalid(name, `a line is a JSON object such as {"question": "What grows in Utah?"}`, "holds no question")
	}
	return all, other, err
}

func readQuestion(line []byte) (q Question, unread []string, err error) {
	if !bytes.HasPrefix(line, []byte("{")) {
		return q, nil, settings.Invalid("", `for example {"question": "What grows in Utah?", "depth": "shallow"}`, "is not a JSON object")
	}
	if q.Request, err = marchwarden.DecodeRequest(line); err != nil {
		return q, nil, err
	}
	if q.Request.Resume != "" {
		return q, nil, settings.Invalid("resume", "use 'marchwarden resume'", "cannot be submitted")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return q, nil, err
	}
	for name := range fields {
		if !slices.Contains(questionFields, name) {
			unread = append(unread, name)
		}
	}
	slices.Sort(unread)
	if raw, ok := fields["id"]; ok {
		switch err := json.Unmarshal(raw, &q.ID); {
		case err != nil:
			return q, nil, settings.Invalid("id", "", "must be a text")
		case strings.TrimSpace(q.ID) == "" || len([]rune(q.ID)) > maxNameChars:
			return q, nil, settings.Invalid("id", "leave it out if there is none", fmt.Sprintf("must be 1 to %d characters", maxNameChars))
		}
	}
	return q, unread, nil
}

// NameTasks gives every question the id of its task, which is the same whenever the file is
// submitted: the same line, asked of the same queue for the same owner and answered by the same
// means, is the same task. A line that is there twice is two tasks.
func NameTasks(all []Question, like dispatch.Task, means []string) error {
	seen := map[string]int{}
	wishes, err := json.Marshal(like.Wishes)
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeInternal, "write down what is wished")
	}
	for i := range all {
		body, err := json.Marshal(all[i].Request)
		if err != nil {
			return marchwarden.Wrap(err, marchwarden.CodeInternal, "write down line %d", all[i].Line)
		}
		key := all[i].ID + "\x00" + string(body)
		parts := []string{"marchwarden submitted question/2", like.Owner, like.Queue, string(wishes), like.Within.String(), all[i].ID, string(body), strconv.Itoa(seen[key])}
		if all[i].Task, err = DeriveID(append(parts, means...)...); err != nil {
			return err
		}
		seen[key]++
	}
	return nil
}
