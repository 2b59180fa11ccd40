package objects

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	firstPause = 50 * time.Millisecond
	longPause  = time.Second
	oneTry     = 2 * time.Second // how long one request may go unanswered
)

// persist makes a request again while it fails because no server answers or leads, for
// as long as there is patience. All that goes through it may be repeated. subject is
// what it sends to.
func persist(ctx context.Context, js jetstream.JetStream, patience time.Duration, subject string, request func(context.Context) error) error {
	until, stop := context.WithTimeout(ctx, patience)
	defer stop()
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		try, done := context.WithTimeout(until, oneTry)
		err := request(try)
		done()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err() // the caller's, and not what it did to the request
		}
		if !passing(err) {
			return named(err)
		}
		if denied := js.Conn().LastError(); forbids(denied, subject) {
			return named(denied)
		}
		select {
		case <-until.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if full(err) { // and no cluster that was forming
				return named(err)
			}
			return unavailable(err, "no server of the evidence store answered in "+patience.String(), "look at the hubs: marchwarden cluster status")
		case <-time.After(pause):
		}
	}
}

// forbids says that err is the server's word that a subject is not for this key. It says
// so beside the request, which it leaves without an answer.
func forbids(err error, subject string) bool {
	return err != nil && errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `"`+subject+`"`)
}

// passing says that an error may be gone in a moment.
func passing(err error) bool {
	for _, e := range []error{
		context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrNoServers, nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded,
		jetstream.ErrNoStreamResponse, jetstream.ErrJetStreamNotEnabled, jetstream.ErrNoHeartbeat, jetstream.ErrOrderedConsumerReset,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.Code == 503 || api.ErrorCode == codeNoPeers) && api.ErrorCode != codeStreamFull // no leader, no quorum, starting up
}

// The server's codes for a stream, an account or a server that is full, and for a cluster
// that has not found all its servers yet.
const (
	codeNoPeers     = 10005
	codeStreamFull  = 10077 // its store refused, as at MaxBytes
	codeAccountFull = 10002
	codeNoResources = 10023
	codeNoStorage   = 10047
)

func full(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && slices.Contains([]jetstream.ErrorCode{codeStreamFull, codeAccountFull, codeNoResources, codeNoStorage}, api.ErrorCode)
}

// named says what a lasting error means to the operator of the cluster.
func named(err error) error {
	if errors.Is(err, jetstream.ErrMsgNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return err // its callers know
	}
	if full(err) {
		return unavailable(err, "the evidence store is full", "give the hubs more storage, or keep evidence elsewhere: dir:/path or s3://bucket")
	}
	if errors.Is(err, nats.ErrPermissionViolation) || errors.Is(err, nats.ErrAuthorization) {
		return &marchwarden.Error{Code: marchwarden.CodeDenied, Message: "the evidence store refuses this key", Err: err}
	}
	return unavailable(err, "the evidence store failed", "")
}

func unavailable(err error, message, hint string) error {
	return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: message, Hint: hint, Err: err}
}
