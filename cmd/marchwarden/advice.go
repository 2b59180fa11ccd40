package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// advised gives an error that has no hint one that fits what the system said: a
// disk without room, or a home folder that is no folder. Its code and its words
// stay.
func (a *app) advised(err error) error {
	if marchwarden.HintOf(err) != "" {
		return err
	}
	var path *fs.PathError
	atHome := a.home != "" && errors.As(err, &path) && below(path.Path, a.home)
	hint := ""
	switch full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT); {
	case full && atHome:
		hint = "make room on the disk, or set " + settings.EnvOf(settings.Home) + " to a folder on another one"
	case full:
		hint = "make room on the disk"
	case errors.Is(err, syscall.ENOTDIR) && atHome:
		if file := fileAbove(a.home); file != "" {
			hint = file + " is a file; set " + settings.EnvOf(settings.Home) + " to a folder that can be written"
		}
	}
	if hint == "" {
		return err
	}
	return &marchwarden.Error{Code: marchwarden.CodeOf(err), Message: err.Error(), Hint: hint}
}

// below reports whether path is folder or in it.
func below(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+string(filepath.Separator))
}

// fileAbove is path, or what is above it, if that is no folder; "" if all of it
// is or could be one.
func fileAbove(path string) string {
	for {
		info, err := os.Stat(path)
		switch parent := filepath.Dir(path); {
		case err == nil && !info.IsDir():
			return path
		case err == nil || parent == path:
			return ""
		default:
			path = parent
		}
	}
}
