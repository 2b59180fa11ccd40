package s3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	redact "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/secret"
)

const statusNoRange = http.StatusRequestedRangeNotSatisfiable

// errExists reports that an object is there which was to be written only if it was not.
var errExists error = marchwarden.Errorf(marchwarden.CodeUnavailable, "the object is there already, or another process writes it")

// explain gives an error of the client its code and its meaning. If the caller has ended
// the call, that is the error.
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
