package streams

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
)

// OwnBlobs is the address of the evidence store that a cluster has in itself; so is "".
const OwnBlobs = "jetstream"

// CheckBlobs says whether address is one of an evidence store, without opening anything.
// What is wrong is CodeInvalid, of a field; nothing secret is repeated.
func CheckBlobs(field, address string) error {
	_, err := parsePlace(field, address)
	return err
}

// OpenBlobs opens the evidence store at address: "jetstream" or "", or "dir:/path" of a directory
// that all hosts share. It stays open for as long as the process runs.
func (c *Conn) OpenBlobs(address string) (blob.Store, error) {
	path, err := parsePlace("blobs of the cluster", address)
	if err != nil {
		return nil, err
	}
	if path == "" {
		return c.blobs()
	}
	// One that is missing is most likely not mounted: what was written below it would be on this
	// host alone.
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "the evidence is in " + path + ", which is not there",
			Hint: "mount the folder that all hosts of the cluster share"}
	}
	files, err := dir.Open(path)
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "blobs")
	}
	return files, nil
}

// parsePlace gives a path, or "" for the cluster's own store.
func parsePlace(field, address string) (path string, err error) {
	if address == "" || address == OwnBlobs {
		return "", nil
	}
	bad := &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: field, Message: "not the address of an evidence store", // not repeated: it may be a key in the wrong place
		Hint: "write jetstream for the hubs' own store, or dir:/path of a folder that all hosts share"}
	path, folder := strings.CutPrefix(address, "dir:")
	switch {
	case folder && filepath.IsAbs(path):
		return path, nil
	case folder:
		bad.Message, bad.Hint = "the path behind dir: does not begin at the root", "write dir:/path; it must be the same directory on every host, such as a network file system"
	case strings.HasPrefix(address, "s3:"):
		bad.Message = "evidence is no longer kept in S3"
	}
	return "", bad
}
