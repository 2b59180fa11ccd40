package hub

import (
	"slices"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// The streams and buckets of package cluster and its drivers. A test of the hub holds
// what is said here to what they use.
var (
	streams = []string{"MW_TASK", "MW_WORK", "MW_LOG", "MW_DONE", "MW_BLOB"}
	buckets = []string{"MW_FACTS", "MW_WORKER", "MW_LIMIT"}
)

// rights are the subjects, within its account, that a key may publish to and subscribe to;
// nil is every one. A client submits tasks and wishes to cancel them, and reads. A worker,
// besides, takes tasks, writes records, ends and evidence, says that it is there, and shares
// limits. Neither makes, changes, empties or removes a stream, nor removes a message.
// Answers to its requests come to a place that it alone may listen at.
func (k Key) rights() *server.Permissions {
	own := []string{inbox(k.Public) + ".>"}
	switch k.Role {
	case RoleHub:
		return nil
	case RoleWorker:
		return allow(slices.Concat(read, ask, work), slices.Concat(own, watch, wake))
	case RoleClient:
		return allow(slices.Concat(read, ask), slices.Concat(own, watch))
	default: // no role, no rights; a list that is empty would be every subject
		return allow(own, own)
	}
}

func allow(publish, subscribe []string) *server.Permissions {
	return &server.Permissions{Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: subscribe}}
}

var (
	// read: the state of streams, their messages one at a time, and what is in buckets.
	read = reading()
	// ask: tasks, wishes to cancel, and the word to workers that there is one.
	ask = []string{"mw.task.*", "mw.cancel.*", "mw.stop.*", "mw.work.*.*.*.*"}
	// watch: what is written to records, and progress.
	watch = []string{"mw.seen.*.*", "mw.live.*.*"}
	// work: taking tasks, their records and ends, evidence, presence and limits.
	work = []string{
		"$JS.API.CONSUMER.CREATE.MW_WORK.*.mw.work.*.*.*.*",
		"$JS.API.CONSUMER.INFO.MW_WORK.*", "$JS.API.CONSUMER.MSG.NEXT.MW_WORK.*",
		"$JS.ACK.MW_WORK.>",
		"mw.log.*.*", "mw.live.*.*", "mw.done.*",
		"mw.blob.*", "mw.chunk.*.*.*",
		"$KV.MW_WORKER.worker.>", "$KV.MW_LIMIT.>", "mw.slow.*",
		"mw.wake.*.*.*.*", "mw.tick.*",
	}
	// wake: that there are tasks, that one is canceled, that a provider wants a pause.
	wake = []string{"mw.wake.*.*.*.*", "mw.tick.*", "mw.stop.*", "mw.slow.*"}
)

func reading() []string {
	subjects := []string{"$JS.API.CONSUMER.LIST.MW_WORK", "$JS.API.STREAM.MSG.GET.KV_MW_FACTS"}
	for _, s := range streams {
		subjects = append(subjects, "$JS.API.STREAM.INFO."+s, "$JS.API.STREAM.MSG.GET."+s)
	}
	for _, b := range buckets {
		subjects = append(subjects, "$JS.API.STREAM.INFO.KV_"+b, "$JS.API.DIRECT.GET.KV_"+b+".$KV."+b+".>")
	}
	return subjects
}

// Inbox is the prefix of the subjects at which the holder of a seed gets replies, and, of its
// account, only hubs do besides.
func Inbox(seed []byte) (string, error) {
	pair, err := nkeys.FromSeed(seed)
	if err != nil {
		return "", marchwarden.Wrap(err, marchwarden.CodeInvalid, "read the key")
	}
	defer pair.Wipe()
	public, err := pair.PublicKey()
	if err != nil || !nkeys.IsValidPublicUserKey(public) {
		return "", marchwarden.Errorf(marchwarden.CodeInvalid, "it is not a user's key")
	}
	return inbox(public), nil
}

func inbox(public string) string { return "_INBOX_" + public }
