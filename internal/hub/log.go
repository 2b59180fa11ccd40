package hub

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/secret"
)

// logger gives what the server says to a slog.Logger, without secrets. It keeps the
// first reason for which the server gave up; the server's own logger would end the
// process there.
type logger struct {
	to    *slog.Logger
	known *secret.Redactor

	mu  sync.Mutex // guards why
	why string
}

func newLogger(to *slog.Logger, known *secret.Redactor) *logger {
	return &logger{to: to.With("part", "hub"), known: known}
}

// text is a message without secrets.
func (l *logger) text(format string, v ...any) string {
	return l.known.Text(fmt.Sprintf(format, v...))
}

// clean is an error without secrets.
func (l *logger) clean(err error) error {
	if s := l.text("%v", err); s != err.Error() {
		return errors.New(s)
	}
	return err
}

func (l *logger) fatal() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// The server's notices are for those who look for a fault.
func (l *logger) Noticef(format string, v ...any) { l.to.Debug(l.text(format, v...)) }
func (l *logger) Warnf(format string, v ...any)   { l.to.Warn(l.text(format, v...)) }
func (l *logger) Errorf(format string, v ...any)  { l.to.Error(l.text(format, v...)) }

func (l *logger) Fatalf(format string, v ...any) {
	s := l.text(format, v...)
	l.to.Error(s)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why == "" {
		l.why = s
	}
}

// Debugf and Tracef are never called: both are switched off.
func (l *logger) Debugf(string, ...any) {}
func (l *logger) Tracef(string, ...any) {}
