// Package depot opens the evidence store that an address names. It owns the addresses;
// the stores are those of dir, objects and s3.
package depot

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/s3"
)

// JetStream is the address of the store that a cluster has in itself; so is "".
const JetStream = "jetstream"

// Means is what opening a store may need.
type Means struct {
	// JetStream opens the cluster's own store, as objects.Open does; what it returns is
	// what Open returns. Nil if there is none.
	JetStream func(context.Context) (blob.Store, error)
	// AccessKey and SecretKey are for S3.
	AccessKey, SecretKey string
}

// Check says whether address is one, without opening anything. What is wrong is
// CodeInvalid; nothing secret is repeated.
func Check(address string) error {
	_, _, err := parse(address)
	return err
}

// Open opens the store at address: "jetstream" or "", "dir:/path", or
// "s3://bucket/prefix?endpoint=https://host&region=name". A directory must be there
// already. The caller calls close when done; it is never nil.
func Open(ctx context.Context, address string, means Means) (store blob.Store, close func() error, err error) {
	nothing := func() error { return nil }
	path, bucket, err := parse(address)
	switch {
	case err != nil:
	case path != "":
		var files *dir.Store
		if files, err = openDir(path); err == nil {
			return files, files.Close, nil
		}
	case bucket != nil:
		bucket.AccessKey, bucket.SecretKey = means.AccessKey, means.SecretKey
		store, err = s3.Open(ctx, *bucket)
	case means.JetStream == nil:
		err = &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "blobs", Message: `"jetstream" is there in a cluster only`, Hint: "write dir:/path or s3://bucket"}
	default:
		store, err = means.JetStream(ctx)
	}
	if err != nil {
		return nil, nothing, err
	}
	return store, nothing, nil
}

// openDir opens the directory that all hosts share. One that is missing is not made: it
// is most likely not mounted, and what was written below it would be on this host alone.
func openDir(path string) (*dir.Store, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "the evidence is in " + path + ", which is not there",
			Hint: "mount the folder that all hosts of the cluster share"}
	}
	files, err := dir.Open(path)
	return files, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "blobs")
}

// parse gives a path, or a bucket, or neither for the cluster's own store.
func parse(address string) (path string, bucket *s3.Config, err error) {
	if address == "" || address == JetStream {
		return "", nil, nil
	}
	if path, ok := strings.CutPrefix(address, "dir:"); ok {
		if !filepath.IsAbs(path) {
			return "", nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "blobs", Message: "the path behind dir: does not begin at the root",
				Hint: "write dir:/path; it must be the same directory on every host, such as a network file system"}
		}
		return path, nil, nil
	}
	if strings.HasPrefix(address, "s3:") {
		config, err := s3.ParseURL(address)
		return "", &config, err
	}
	// Not repeated: what is no address may be a key in the wrong place.
	return "", nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "blobs", Message: "not the address of an evidence store",
		Hint: "write jetstream, dir:/path or s3://bucket/prefix?endpoint=https://host&region=name"}
}
