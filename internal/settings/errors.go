package settings

import (
	"errors"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Invalid makes the error of an argument, flag or setting that is wrong.
func Invalid(field, hint, message string) error {
	return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: field, Message: message, Hint: hint}
}

// Renamed is an error with another name for the field that it is about, such as that of a flag;
// a field that is not in names keeps its own.
func Renamed(err error, names map[string]string) error {
	var e *marchwarden.Error
	if !errors.As(err, &e) || names[e.Field] == "" {
		return err
	}
	named := *e
	named.Field = names[e.Field]
	return &named
}
