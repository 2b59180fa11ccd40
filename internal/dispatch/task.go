package dispatch

import (
	"fmt"
	"regexp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// validQueue is what a queue may be called: a researcher's name, or the investigator's.
var validQueue = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}$`)

func checkQueue(name string) error {
	if !validQueue.MatchString(name) {
		return invalid("queue", "%.60q is no queue: it has 1 to 40 of a-z, 0-9, _ and -, and begins with a letter", name)
	}
	return nil
}

func invalid(field, format string, args ...any) error {
	return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Completed is t with what it leaves open filled in: a record and an investigation of its
// own.
func (t Task) Completed() Task {
	if !t.Record.Valid() {
		t.Record = t.ID
	}
	if !t.Investigation.Valid() {
		t.Investigation = t.ID
	}
	return t
}

// Check says what is wrong with a task, as CodeInvalid. Engines check what is submitted,
// as Completed; workers check what they run, which may have come by another way.
func (t Task) Check() error {
	switch {
	case !t.ID.Valid():
		return invalid("id", "the task has none")
	case !t.Record.Valid():
		return invalid("record", "task %s has none", t.ID)
	case !t.Investigation.Valid():
		return invalid("investigation", "task %s is part of none", t.ID)
	case t.Priority < Urgent || t.Priority > Low:
		return invalid("priority", "%d is not from %d to %d", t.Priority, Urgent, Low)
	case t.Within < 0:
		return invalid("within_ns", "%s is less than 0", t.Within)
	case t.ID == t.Record && t.Request.Resume != "":
		return invalid("request.resume", "a task that makes its own run resumes none")
	case t.ID != t.Record && t.Request.Resume != t.Record.String():
		return invalid("request.resume", "a task that resumes run %s asks for %.60q", t.Record, t.Request.Resume)
	}
	if err := checkQueue(t.Queue); err != nil {
		return err
	}
	return t.Request.Validate()
}

// Check says what is wrong with a job, as CodeInvalid.
func (j Job) Check() error {
	if j.Slots < 1 {
		return invalid("slots", "%d is too few: want at least 1", j.Slots)
	}
	return checkQueue(j.Queue)
}

// CanceledEnd is the end of a task that no worker has when it is found to be canceled.
func CanceledEnd(reason string) End {
	message := "canceled while no worker had it"
	if reason != "" {
		message += ": " + reason
	}
	return End{Status: Canceled, Code: marchwarden.CodeCanceled, Message: message}
}

// GivenUp is the end of a task that n workers began and none of them survived.
func GivenUp(n int) End {
	return End{Status: Failed, Code: marchwarden.CodeUnavailable,
		Message: fmt.Sprintf("given up: of %d workers that began it none was heard of again", n),
		Hint:    "look at the workers' logs; what they were doing last is in the record"}
}
