package s3

import (
	"bytes"
	"context"
	"crypto/md5" // #nosec G501: the checksum that every S3 service verifies
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	redact "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/secret"
)

const (
	contentType = "application/octet-stream"
	perSecond   = 1 << 20 // the slowest transfer that is waited for, in bytes
)

// keeper is the blob.Keeper over a bucket.
type keeper struct {
	client   *minio.Core
	codec    *blob.Codec
	bucket   string
	prefix   string // "" or ends in a slash
	timeout  time.Duration
	secret   string // to keep it out of errors
	partSize uint64
}

func (k *keeper) nameOf(ref blob.Ref) string {
	return k.prefix + "sha256/" + ref.Hex()[:2] + "/" + ref.Hex()
}

// Keep writes the object unless an intact one is there.
func (k *keeper) Keep(ctx context.Context, ref blob.Ref, content []byte) error {
	onlyNew := true
	for {
		old, err := k.Read(ctx, ref)
		if err == nil && bytes.Equal(old, content) {
			return nil
		}
		missing := errors.Is(err, blob.ErrNotFound)
		if err != nil && !missing && !errors.Is(err, blob.ErrCorrupt) {
			return err
		}
		onlyNew = onlyNew && missing
		err = k.write(ctx, k.nameOf(ref), k.codec.Encode(ref, content), onlyNew)
		if !onlyNew || !errors.Is(err, errExists) {
			return err
		}
		onlyNew = false // another writer was first: look at what it wrote, once
	}
}

// write sends an object, with a checksum that the service verifies; if onlyNew, it fails
// with errExists where there is one.
func (k *keeper) write(ctx context.Context, name string, file []byte, onlyNew bool) error {
	try, done := k.within(ctx, len(file))
	defer done()
	// Not the checksums of pieces within a request, which fewer services know.
	opts := minio.PutObjectOptions{ContentType: contentType, DisableContentSha256: true}
	if onlyNew {
		opts.SetMatchETagExcept("*")
	}
	var err error
	if uint64(len(file)) > k.partSize {
		opts.PartSize, opts.SendContentMd5, opts.NumThreads = k.partSize, true, 2
		_, err = k.client.Client.PutObject(try, k.bucket, name, bytes.NewReader(file), int64(len(file)), opts)
	} else {
		_, err = k.send(try, name, bytes.NewReader(file), file, opts)
	}
	return k.explain(ctx, err)
}

// send writes what body gives, which is to be file: without its checksums there are
// services that take half of it for the whole.
func (k *keeper) send(ctx context.Context, name string, body io.Reader, file []byte, opts minio.PutObjectOptions) (minio.UploadInfo, error) {
	md, sum := md5.Sum(file), sha256.Sum256(file)
	return k.client.PutObject(ctx, k.bucket, name, body, int64(len(file)), base64.StdEncoding.EncodeToString(md[:]), hex.EncodeToString(sum[:]), opts)
}

// within bounds a request that carries size bytes.
func (k *keeper) within(ctx context.Context, size int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, k.timeout+time.Duration(size/perSecond)*time.Second)
}

func (k *keeper) Read(ctx context.Context, ref blob.Ref) ([]byte, error) {
	file, err := k.fetch(ctx, k.nameOf(ref), blob.MaxForm)
	if err != nil {
		return nil, err
	}
	return k.codec.Decode(ref, file)
}

func (k *keeper) Size(ctx context.Context, ref blob.Ref) (int64, error) {
	head, err := k.fetch(ctx, k.nameOf(ref), blob.FormHeader)
	if err != nil {
		return 0, err
	}
	size, err := blob.FormSize(ref, head)
	return int64(size), err
}

// fetch returns up to limit bytes of an object. One larger than any blob is damaged.
func (k *keeper) fetch(ctx context.Context, name string, limit int) ([]byte, error) {
	var opts minio.GetObjectOptions
	part := limit < blob.MaxForm
	if part {
		if err := opts.SetRange(0, int64(limit)-1); err != nil {
			return nil, fmt.Errorf("s3: %w", err)
		}
	}
	try, stop := context.WithCancel(ctx)
	defer stop()
	late := time.AfterFunc(k.timeout, stop)
	defer late.Stop()
	body, info, _, err := k.client.GetObject(try, k.bucket, name, opts)
	if part && minio.ToErrorResponse(err).StatusCode == statusNoRange {
		return nil, nil // an empty object has no first byte
	}
	if err != nil {
		return nil, k.explain(ctx, err)
	}
	defer body.Close()
	if info.Size > blob.MaxForm {
		return nil, fmt.Errorf("%w: the object has %d bytes, the limit is %d", blob.ErrCorrupt, info.Size, blob.MaxForm)
	}
	late.Reset(k.timeout + time.Duration(info.Size/perSecond)*time.Second)
	buf := bytes.NewBuffer(make([]byte, 0, max(0, min(info.Size, int64(limit)))+bytes.MinRead))
	if _, err := buf.ReadFrom(io.LimitReader(body, int64(limit))); err != nil {
		return nil, k.explain(ctx, err)
	}
	return buf.Bytes(), nil
}

const statusNoRange = http.StatusRequestedRangeNotSatisfiable

// errExists reports that an object is there which was to be written only if it was not.
var errExists error = marchwarden.Errorf(marchwarden.CodeUnavailable, "the object is there already, or another process writes it")

// explain gives an error of the client its meaning, unless the caller ended the call.
func (k *keeper) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var response minio.ErrorResponse
	if errors.As(err, &response) && response.StatusCode != 0 {
		return k.refused(response)
	}
	fail := func(message, hint string) error {
		return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: message, Hint: hint, Err: k.hushed(err)}
	}
	var dns *net.DNSError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded): // ours: the caller's is above
		return fail(fmt.Sprintf("the service of the evidence store gave no answer in %s", k.timeout), "look at the service and the way there")
	case errors.As(err, &dns):
		return fail(fmt.Sprintf("the host %q of the evidence store has no address", dns.Name), "look at endpoint= in the address of the store")
	}
	return fail("the service of the evidence store cannot be reached", "look at endpoint= in the address of the store, and at the service")
}

func (k *keeper) refused(response minio.ErrorResponse) error {
	fail := func(code marchwarden.Code, message, hint string) error {
		said := fmt.Errorf("status %d, %.60q: %.200q", response.StatusCode, k.hush(response.Code), k.hush(response.Message)) // what is cut off is not known again
		return &marchwarden.Error{Code: code, Message: message, Hint: hint, Err: said}
	}
	switch response.Code {
	case "NoSuchKey", "NotFound":
		return blob.ErrNotFound
	case "NoSuchBucket":
		return fail(marchwarden.CodeUnavailable, fmt.Sprintf("there is no bucket %q", k.bucket), "make the bucket first, and look at region= and endpoint= in the address of the store")
	case "PreconditionFailed":
		return errExists
	case "InvalidAccessKeyId", "SignatureDoesNotMatch":
		return fail(marchwarden.CodeDenied, "the service of the evidence store refuses the key", "look at AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	case "RequestTimeTooSkewed":
		return fail(marchwarden.CodeDenied, "the service of the evidence store refuses the time of this machine", "set the clock")
	case "BadDigest", "XAmzContentSHA256Mismatch", "InvalidDigest":
		return fail(marchwarden.CodeUnavailable, "what the service of the evidence store received is not what was sent", "look for a proxy or a disk that changes bytes")
	}
	switch response.StatusCode {
	case http.StatusConflict: // another writer of the same object is at work
		return errExists
	case http.StatusForbidden, http.StatusUnauthorized:
		return fail(marchwarden.CodeDenied, "the service of the evidence store refuses this", "the key needs s3:GetObject, s3:PutObject and s3:ListBucket on the bucket")
	}
	return fail(marchwarden.CodeUnavailable, "the service of the evidence store failed", "")
}

// hushed is err without the secret key, should a service repeat it.
func (k *keeper) hushed(err error) error {
	if s := k.hush(err.Error()); s != err.Error() {
		return errors.New(s)
	}
	return err
}

// hush is s without the secret key in any spelling. A key that is too short to be known by
// its spellings, as of a service at home, is taken out as it stands.
func (k *keeper) hush(s string) string {
	s = redact.New(k.secret).Text(s)
	if k.secret == "" {
		return s
	}
	return strings.ReplaceAll(s, k.secret, redact.Mark)
}
