package marchwarden

import (
	"context"
	"errors"
	"fmt"
)

// Code says for machines what kind of failure an error is. A Code is itself an
// error, so errors.Is(err, CodeDenied) asks whether err is of that kind. Codes
// cross the wire and are recorded in traces: the list only grows.
type Code string

// The codes. Edges translate them: exit status, MCP error, gap category.
const (
	CodeInvalid     Code = "invalid"      // the caller's input breaks a rule of the contract
	CodeNotFound    Code = "not_found"    // the thing asked for does not exist
	CodeDenied      Code = "denied"       // access refused: permission, login, paywall, robots.txt
	CodeUnavailable Code = "unavailable"  // a service or file could not be reached or answered badly
	CodeExhausted   Code = "exhausted"    // a limit of the budget was reached first
	CodeCanceled    Code = "canceled"     // the caller, or a deadline, stopped the work
	CodeUnsupported Code = "unsupported"  // this researcher does not do that
	CodeCorrupt     Code = "corrupt"      // stored bytes are not what their hash says
	CodeNotRecorded Code = "not_recorded" // a replay asked for something the record does not hold
	CodeRateLimited Code = "rate_limited" // a service asks to come back later
	CodeTimeout     Code = "timeout"      // a service fell silent or took too long
	CodeTruncated   Code = "truncated"    // an answer broke off in the middle
	CodeMalformed   Code = "malformed"    // an answer is not what its protocol says, or is over a limit
	CodeRefused     Code = "refused"      // a model would not answer
	CodeInternal    Code = "internal"     // a bug, or an unclassified fault
)

// Known reports whether c is one of the codes above.
func (c Code) Known() bool { return gapCategories[c] != "" }

// Error makes a code usable with errors.Is.
func (c Code) Error() string { return string(c) }

// Error is a failure with a code for machines and a sentence for people.
type Error struct {
	Code    Code
	Field   string // the field of the input that is wrong, when Code is CodeInvalid
	Message string // one sentence, lower case, no full stop
	Hint    string // what to do about it, or ""
	Err     error  // the cause, or nil
}

// Error gives the sentence, with the field in front and the cause behind it.
func (e *Error) Error() string {
	s := e.Message
	if e.Field != "" {
		s = e.Field + ": " + s
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap exposes the code and the cause to errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Code}
	}
	return []error{e.Code, e.Err}
}

// Errorf makes an Error with a code and a formatted sentence.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap gives err a code and says what was being done. A nil err stays nil.
func Wrap(err error, code Code, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Err: err}
}

// CodeOf classifies any error. Context errors are CodeCanceled; an unclassified error is
// CodeInternal; nil has no code.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var code Code
	if errors.As(err, &code) && code != "" {
		return code
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return CodeCanceled
	}
	return CodeInternal
}

// HintOf returns the hint of the first Error in err's chain that has one, or "".
func HintOf(err error) string {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}

// invalid makes the error of a field that breaks a limit of the contract.
func invalid(field, hint, format string, args ...any) *Error {
	return &Error{Code: CodeInvalid, Field: field, Message: fmt.Sprintf(format, args...), Hint: hint}
}
