package main

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
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/relay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// question is a line of a file of questions.
type question struct {
	line int    // in the file, from one
	id   string // as its author calls it; "" if it has no name
	task marchwarden.TraceID
	req  marchwarden.Request
}

// name is how the question is called in the results.
func (q question) name() string { return cmp.Or(q.id, q.task.String()) }

// questionFields are what a line may have. Others are passed over, and said.
var questionFields = []string{"id", "question", "context", "depth", "constraints"}

// The most that a file of questions may be.
const (
	maxQuestionBytes = 1 << 30
	maxNameChars     = 200
)

// readQuestions reads a whole file of questions, one JSON object a line. Errors name the
// line and the field. other are the unknown fields.
func readQuestions(r io.Reader, name string) (all []question, other []string, err error) {
	named := map[string]int{}
	fail := func(n int, err error) error {
		var e *marchwarden.Error
		where := fmt.Sprintf("%s:%d", name, n)
		if errors.As(err, &e) {
			field := where
			if e.Field != "" && e.Field != "request" {
				field += ": " + e.Field
			}
			return invalid(field, e.Hint, e.Message)
		}
		return invalid(where, "", err.Error())
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
		q.line = l.N
		if first, twice := named[q.id]; twice && q.id != "" {
			err = fail(l.N, invalid("id", "", fmt.Sprintf("%q is the id of line %d, too", plaintext.Clip(term.CleanLine(q.id), 60), first)))
			return
		}
		named[q.id] = l.N
		for _, f := range unread {
			if !slices.Contains(other, f) {
				other = append(other, f)
			}
		}
		all = append(all, q)
	})
	if err == nil && scanErr != nil {
		err = invalid(name, "", "cannot be read: "+durable.Cause(scanErr))
	}
	if err == nil && len(all) == 0 {
		err = invalid(name, `a line is a JSON object such as {"question": "What grows in Utah?"}`, "holds no question")
	}
	return all, other, err
}

func readQuestion(line []byte) (q question, unread []string, err error) {
	if !bytes.HasPrefix(line, []byte("{")) {
		return q, nil, invalid("", `for example {"question": "What grows in Utah?", "depth": "shallow"}`, "is not a JSON object")
	}
	if q.req, err = marchwarden.DecodeRequest(line); err != nil {
		return q, nil, err
	}
	if q.req.Resume != "" {
		return q, nil, invalid("resume", "use 'marchwarden resume'", "cannot be submitted")
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
		switch err := json.Unmarshal(raw, &q.id); {
		case err != nil:
			return q, nil, invalid("id", "", "must be a text")
		case strings.TrimSpace(q.id) == "" || len([]rune(q.id)) > maxNameChars:
			return q, nil, invalid("id", "leave it out if there is none", fmt.Sprintf("must be 1 to %d characters", maxNameChars))
		}
	}
	return q, unread, nil
}

// nameTasks gives every question the task that it is, whenever it is submitted: the same
// line, asked of the same queue for the same owner and answered by the same means, is the
// same task, and one that is there twice is two.
func nameTasks(all []question, like dispatch.Task, means []string) error {
	seen := map[string]int{}
	wishes, err := json.Marshal(like.Wishes)
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeInternal, "write down what is wished")
	}
	for i := range all {
		body, err := json.Marshal(all[i].req)
		if err != nil {
			return marchwarden.Wrap(err, marchwarden.CodeInternal, "write down line %d", all[i].line)
		}
		key := all[i].id + "\x00" + string(body)
		parts := []string{"marchwarden submitted question/2", like.Owner, like.Queue, string(wishes), like.Within.String(), all[i].id, string(body), strconv.Itoa(seen[key])}
		if all[i].task, err = relay.DeriveID(append(parts, means...)...); err != nil {
			return err
		}
		seen[key]++
	}
	return nil
}

// aside are the settings that change no answer: where records lie, what is shown, and
// who else is served. Those of an engine and of a hub are, too.
var aside = []string{settings.Home, settings.TraceDir, settings.Ledger, settings.LogFormat, settings.Debug, settings.NoColor, settings.HTTPToken, settings.Worker, settings.Limits, settings.Blobs, settings.S3Key, settings.S3Secret}

// means are everything besides a question that can change its answer where the work is
// done here: the settings, or the flags in their place, the folders of the library, the
// researchers of config.yaml and the table of confidence. Of a secret they tell that it
// is there.
func (a *app) means(c *settings.Settings, o network.Options) ([]string, error) {
	flags := map[string][]string{settings.Model: {o.Model}, settings.Search: {o.Search}, settings.Render: {o.Render}, settings.Timeout: {o.Timeout}, settings.DB: {o.DB}, settings.Library: {}}
	for _, dir := range o.Library {
		flags[settings.Library] = append(flags[settings.Library], a.Source().Absolute(dir, a.Dir))
	}
	all := []string{fmt.Sprintf("online=%t embedded=%t", o.Online, o.Embedded)}
	for _, s := range settings.All {
		if slices.Contains(aside, s.Name) || strings.HasPrefix(s.Name, "engine") || strings.HasPrefix(s.Name, "hub_") {
			continue
		}
		texts := slices.DeleteFunc(flags[s.Name], func(t string) bool { return t == "" })
		if len(texts) == 0 {
			texts = c.List(s.Name)
		}
		if s.Name == settings.DB && len(texts) == 1 && database.IsFile(texts[0]) {
			texts = []string{a.Source().Absolute(texts[0], a.Dir)}
		}
		all = append(all, a.Hide.Text(fmt.Sprintf("%s=%q", s.Name, texts)))
	}
	for _, m := range c.Members {
		m.At = ""
		all = append(all, a.Hide.Text(fmt.Sprintf("%+v", m)))
	}
	kept, err := network.KeptFolders(c.FoldersPath())
	if err != nil {
		return nil, err
	}
	table, err := network.CalibrationOf(c)
	return append(all, fmt.Sprintf("%q", kept), string(table)), err
}
