package browsertest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// longestScratch leaves room for the name of the socket that the browser makes in its folder for temporary files: a socket's path may have 104 bytes.
const longestScratch = 56

// makeProfile makes the folders of one browser: the profile with its preferences, and one for the browser's
// temporary files, which is the same unless its path is too long for that. It returns what it made even with an error.
func makeProfile(preferences string) (profile, scratch string, err error) {
	if profile, err = os.MkdirTemp("", "marchwarden-render-"); err != nil {
		return "", "", err
	}
	scratch = profile
	if len(profile) > longestScratch && os.PathSeparator == '/' {
		if scratch, err = os.MkdirTemp("/tmp", "marchwarden-render-"); err != nil {
			return profile, "", err
		}
	}
	dir := filepath.Join(profile, "Default")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return profile, scratch, err
	}
	return profile, scratch, os.WriteFile(filepath.Join(dir, "Preferences"), []byte(preferences), 0o600)
}

// removeProfile removes one of these folders. It tries for a while: children that were killed may still be writing. A folder that was never made, or is gone, is removed.
func removeProfile(dir string) error {
	if dir == "" {
		return nil
	}
	var err error
	for wait := time.Millisecond; wait < 600*time.Millisecond; wait *= 2 {
		if err = os.RemoveAll(dir); err == nil {
			if _, gone := os.Lstat(dir); errors.Is(gone, os.ErrNotExist) {
				return nil
			}
		}
		time.Sleep(wait)
	}
	if err == nil {
		err = errors.New("still in use")
	}
	return fmt.Errorf("remove profile: %w", err)
}
