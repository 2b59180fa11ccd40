// Package s3 is the evidence store in a bucket of any service that speaks S3. It owns the
// names of the objects, what is asked of the service, and what its errors mean.
//
// Layout: one object for each blob, in the form of package blob, under
//
//	<prefix>/sha256/ab/<hex>    "ab" are the first two of the 64 digits of <hex>
//
// An object is written by one request, or, if it is large, in parts that become an object
// by one request: it is there as a whole or not at all. The service checks what arrived
// against a checksum that is sent with it. A blob is written only if there is none,
// where the service knows such conditions; where not, writers replace it by its equal.
// Nothing is removed. A key needs the rights s3:GetObject, s3:PutObject and
// s3:ListBucket; without the last one, services answer for what is missing as for what
// is forbidden.
package s3

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
)

const (
	amazon         = "s3.amazonaws.com"
	defaultTimeout = 30 * time.Second
	defaultRetries = 5
	partSize       = 64 << 20 // objects above it are sent in parts of it
)

// Config says where the bucket is and who asks.
type Config struct {
	Endpoint  string // host, or host:port; "" is Amazon's
	Plain     bool   // no TLS
	Bucket    string
	Prefix    string // before all names, without slashes at its ends; may be ""
	Region    string // "" asks the service
	AccessKey string
	SecretKey string
	// Timeout bounds a request and its retries, not counting the time that content
	// takes at a megabyte per second; 0 is 30 seconds.
	Timeout time.Duration
}

// Open opens the store and asks the service once, so that a wrong name, key or address is
// found here. The bucket must exist. Calls give CodeDenied where the service refuses the
// key, and CodeUnavailable where it cannot be reached or fails; the secret key is in no
// error. There is nothing to close.
func Open(ctx context.Context, config Config) (blob.Store, error) {
	keeper, err := newKeeper(config)
	if err != nil {
		return nil, err
	}
	probe := keeper.nameOf(blob.Of(nil)) // the answer is of no interest, if there is one
	if _, err := keeper.fetch(ctx, probe, 1); err != nil && !errors.Is(err, blob.ErrNotFound) {
		return nil, fmt.Errorf("open evidence store s3://%s: %w", config.Bucket, err)
	}
	return blob.Guard(keeper), nil
}

func newKeeper(config Config) (*keeper, error) {
	if config.AccessKey == "" || config.SecretKey == "" {
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Message: "s3: no access key", Hint: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"}
	}
	config.Endpoint, config.Timeout = cmp.Or(config.Endpoint, amazon), cmp.Or(config.Timeout, defaultTimeout)
	client, err := minio.NewCore(config.Endpoint, &minio.Options{
		Creds:      credentials.NewStaticV4(config.AccessKey, config.SecretKey, ""),
		Secure:     !config.Plain,
		Region:     config.Region,
		Transport:  newTransport(),
		MaxRetries: defaultRetries,
	})
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeInvalid, "s3 endpoint %q", config.Endpoint)
	}
	codec, err := blob.NewCodec()
	if err != nil {
		return nil, fmt.Errorf("s3: %w", err)
	}
	k := &keeper{client: client, codec: codec, bucket: config.Bucket, timeout: config.Timeout, secret: config.SecretKey, partSize: partSize}
	if config.Prefix != "" {
		k.prefix = config.Prefix + "/"
	}
	return k, nil
}

// newTransport is a transport that answers, one way or the other.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 20 * time.Second,
		IdleConnTimeout:       time.Minute,
		MaxIdleConnsPerHost:   16,
		DisableCompression:    true, // what is stored is what is wanted
		ForceAttemptHTTP2:     true,
	}
}

// ParseURL reads "s3://bucket/prefix?endpoint=https://host:port&region=name". The keys
// are not part of it: an address ends up in files, logs and lists of processes, so one
// that has any is refused, without repeating it. Errors are of field.
func ParseURL(field, address string) (Config, error) {
	refuse := func(format string, args ...any) (Config, error) {
		return Config{}, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: field, Message: "s3 address: " + fmt.Sprintf(format, args...),
			Hint: "write s3://bucket/prefix?endpoint=https://host&region=name; keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"}
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "s3" {
		return refuse("it is none")
	}
	if u.User != nil {
		return refuse("it holds keys, which belong in the environment")
	}
	config := Config{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
	if err := checkNames(config); err != nil {
		return refuse("%v", err)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil || u.Fragment != "" {
		return refuse("what follows the bucket cannot be read")
	}
	for name, values := range query {
		switch {
		case len(values) != 1:
			return refuse("%q is there %d times", name, len(values))
		case name == "region":
			config.Region = values[0]
		case name == "endpoint":
			if err := config.setEndpoint(values[0]); err != nil {
				return refuse("%v", err)
			}
		default:
			return refuse("unknown setting %q", name)
		}
	}
	return config, nil
}

func checkNames(config Config) error {
	if n := len(config.Bucket); n < 3 || n > 63 || strings.Trim(config.Bucket, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" {
		return fmt.Errorf("bucket %q: want 3 to 63 lower-case letters, digits, dots and hyphens", config.Bucket)
	}
	for part := range strings.SplitSeq(config.Prefix, "/") {
		if part == "." || part == ".." || part == "" && config.Prefix != "" {
			return fmt.Errorf("prefix %q: has an empty part, \".\" or \"..\"", config.Prefix)
		}
	}
	if strings.ContainsFunc(config.Prefix, func(r rune) bool { return r < ' ' || r == 0x7f }) || len(config.Prefix) > 512 {
		return errors.New("prefix: has control characters or over 512 bytes")
	}
	return nil
}

func (c *Config) setEndpoint(value string) error {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("endpoint: want https://host or https://host:port")
	}
	if u.User != nil {
		return errors.New("endpoint: it holds keys, which belong in the environment")
	}
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("endpoint: want nothing behind the host")
	}
	c.Endpoint, c.Plain = u.Host, u.Scheme == "http"
	return nil
}
