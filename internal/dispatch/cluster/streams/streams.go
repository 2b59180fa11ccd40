package streams

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// The streams and buckets. Their number does not depend on the load.
const (
	StreamTask = "MW_TASK" // specifications and wishes to cancel, one message each
	StreamWork = "MW_WORK" // what waits or is under way: a pointer for each task
	StreamLog  = "MW_LOG"  // the records
	StreamDone = "MW_DONE" // how tasks ended, one message each
	StreamBlob = "MW_BLOB" // documents, by the hash of their content

	BucketFacts  = "MW_FACTS"
	BucketWorker = "MW_WORKER"
	BucketLimit  = "MW_LIMIT"
)

// Keep is how long streams keep what they hold. Zero is the default of each.
type Keep struct {
	Log  time.Duration `json:"log_ns,omitempty"`  // records; 7 days
	Task time.Duration `json:"task_ns,omitempty"` // specifications; 14 days
	Done time.Duration `json:"done_ns,omitempty"` // ends; 30 days
}

// Complete is k with the defaults in it.
func (k Keep) Complete() Keep {
	const day = 24 * time.Hour
	return Keep{Log: cmp.Or(k.Log, 7*day), Task: cmp.Or(k.Task, 14*day), Done: cmp.Or(k.Done, 30*day)}
}

// Bands and Lanes are how the work of a queue is divided: by priority, and by owner.
const (
	Bands = 3
	Lanes = 8
)

// TaskSubject holds the specification of a task.
func TaskSubject(id marchwarden.TraceID) string { return "mw.task." + id.String() }

// CancelSubject holds the wish to cancel it: the first one (after is 0), or the one that
// came after the wish with that sequence. A subject holds one message.
func CancelSubject(id marchwarden.TraceID, after uint64) string {
	subject := "mw.cancel." + id.String()
	if after > 0 {
		subject += "_" + strconv.FormatUint(after, 10)
	}
	return subject
}

// ParseCancel says what a subject holds a wish to cancel of.
func ParseCancel(subject string) (id marchwarden.TraceID, ok bool) {
	name, ok := strings.CutPrefix(subject, "mw.cancel.")
	name, _, _ = strings.Cut(name, "_")
	id, err := marchwarden.ParseTraceID(name)
	return id, ok && err == nil
}

// DoneSubject holds its end.
func DoneSubject(id marchwarden.TraceID) string { return "mw.done." + id.String() }

// LogSubject holds a record.
func LogSubject(investigation, record marchwarden.TraceID) string {
	return "mw.log." + investigation.String() + "." + record.String()
}

// SeenSubject is where what is written to a record is repeated.
func SeenSubject(investigation, record marchwarden.TraceID) string {
	return "mw.seen." + investigation.String() + "." + record.String()
}

// LiveSubject carries a task's progress, which is not stored.
func LiveSubject(investigation, task marchwarden.TraceID) string {
	return "mw.live." + investigation.String() + "." + task.String()
}

// StopSubject tells that a task is canceled; AnyStop tells it of all.
func StopSubject(task marchwarden.TraceID) string { return stopPrefix + task.String() }

// AnyStop is every StopSubject.
const (
	AnyStop    = stopPrefix + "*"
	stopPrefix = "mw.stop."
)

// WorkSubject holds the pointer to a task of an owner that waits in a band of a queue.
func WorkSubject(queue string, band int, owner string, id marchwarden.TraceID) string {
	return laneSubject("mw.work.", queue, band, laneOf(owner)) + "." + id.String()
}

// WakeSubject tells those who wait for a queue to look into a lane.
func WakeSubject(queue string, band, lane int) string {
	return laneSubject("mw.wake.", queue, band, lane) + ".again"
}

// ParseLane says of which lane of which band of which queue a subject is that pointers
// wait at or are announced at, whichever they are.
func ParseLane(subject string) (queue string, band, lane int, ok bool) {
	part := strings.Split(subject, ".") // mw.<work or wake>.<queue>.p<band>.<lane>.<task>
	if len(part) != 6 {
		return "", 0, 0, false
	}
	band, err1 := strconv.Atoi(strings.TrimPrefix(part[3], "p"))
	lane, err2 := strconv.Atoi(part[4])
	return part[2], band, lane, err1 == nil && err2 == nil && band >= 0 && band < Bands && lane >= 0 && lane < Lanes
}

func laneSubject(prefix, queue string, band, lane int) string {
	return prefix + queue + ".p" + strconv.Itoa(band) + "." + strconv.Itoa(lane)
}

func laneOf(owner string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(owner)) // a hash never fails
	return int(h.Sum32() % Lanes)
}

// ConsumerName names the durable consumer of a lane.
func ConsumerName(queue string, band, lane int) string {
	return queue + "_p" + strconv.Itoa(band) + "_" + strconv.Itoa(lane)
}

// ConsumerConfig is what the consumer of a lane is made of.
func ConsumerConfig(queue string, band, lane int, lease time.Duration) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       ConsumerName(queue, band, lane),
		FilterSubject: laneSubject("mw.work.", queue, band, lane) + ".*",
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       lease,
		MaxDeliver:    -1,
		MaxAckPending: -1,
		MaxWaiting:    4096,
	}
}

// streamOf is the stream of a subject that is kept.
func streamOf(subject string) string {
	switch name, _, _ := strings.Cut(strings.TrimPrefix(subject, "mw."), "."); name {
	case "task", "cancel":
		return StreamTask
	case "work":
		return StreamWork
	case "log":
		return StreamLog
	case "blob", "chunk":
		return StreamBlob
	default:
		return StreamDone
	}
}

func streams(replicas int, keep Keep) []jetstream.StreamConfig {
	all := []jetstream.StreamConfig{
		{Name: StreamTask, Subjects: []string{"mw.task.*", "mw.cancel.*"}, MaxAge: keep.Task},
		// A task is queued at most once, however often it is submitted. A waiting worker hears of
		// it when it is stored, not before.
		{Name: StreamWork, Subjects: []string{"mw.work.>"}, Retention: jetstream.WorkQueuePolicy,
			RePublish: &jetstream.RePublish{Source: "mw.work.>", Destination: "mw.wake.>", HeadersOnly: true}},
		{Name: StreamLog, Subjects: []string{"mw.log.*.*"}, MaxMsgsPerSubject: -1, MaxAge: keep.Log,
			RePublish: &jetstream.RePublish{Source: "mw.log.>", Destination: "mw.seen.>"}},
		{Name: StreamDone, Subjects: []string{"mw.done.*"}, MaxAge: keep.Done},
	}
	for i := range all {
		all[i].Storage = jetstream.FileStorage
		// The server's compression of blocks does not survive that all hubs are killed at
		// once: a block was found that could not be read again.
		all[i].Compression = jetstream.NoCompression
		all[i].Replicas = replicas
		all[i].MaxMsgSize = 1 << 20
		all[i].Duplicates = 2 * time.Minute
		// Direct reads may come from a replica that is behind: records are read from the
		// leader alone.
		all[i].AllowDirect = false
		all[i].DenyDelete = all[i].Name != StreamWork
		if all[i].Name != StreamLog { // one message a subject, and the first one stays
			all[i].MaxMsgsPerSubject, all[i].Discard, all[i].DiscardNewPerSubject = 1, jetstream.DiscardNew, true
		}
	}
	return all
}

// Prepare makes the streams and buckets, or brings them up to date. It may be repeated,
// by several hubs at once, and tries until ctx ends while a cluster is forming.
func (c *Conn) Prepare(ctx context.Context, replicas int, lease time.Duration, keep Keep) error {
	for _, cfg := range streams(replicas, keep.Complete()) {
		if err := c.prepare(ctx, cfg); err != nil {
			return err
		}
	}
	buckets := []jetstream.KeyValueConfig{
		{Bucket: BucketFacts, History: 1},
		{Bucket: BucketWorker, History: 1, TTL: lease},
		{Bucket: BucketLimit, History: 1, TTL: 48 * time.Hour}, // longer than the day that money is counted by; hosts come and go
	}
	for _, cfg := range buckets {
		cfg.Replicas, cfg.Storage = replicas, jetstream.FileStorage
		if err := c.Insist(ctx, "prepare bucket "+cfg.Bucket, func(ctx context.Context) error {
			_, err := c.js.CreateKeyValue(ctx, cfg)
			if errors.Is(err, jetstream.ErrBucketExists) {
				_, err = c.js.UpdateKeyValue(ctx, cfg)
			}
			return err
		}); err != nil {
			return err
		}
	}
	return c.Insist(ctx, "renew the leases", func(ctx context.Context) error { return c.renewConsumers(ctx, lease) })
}

// prepare makes a stream, or brings it up to date. One that is as it is wanted stays as it is:
// several hubs that change it at the same moment keep each other waiting.
func (c *Conn) prepare(ctx context.Context, cfg jetstream.StreamConfig) error {
	return c.Insist(ctx, "prepare stream "+cfg.Name, func(ctx context.Context) error {
		_, err := c.js.CreateStream(ctx, cfg)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			_, err = c.js.UpdateStream(ctx, cfg)
		}
		return err
	})
}

// renewConsumers gives the consumers that there are the lease of now.
func (c *Conn) renewConsumers(ctx context.Context, lease time.Duration) error {
	stream, err := c.js.Stream(ctx, StreamWork)
	if err != nil {
		return fmt.Errorf("look at stream %s: %w", StreamWork, err)
	}
	list := stream.ListConsumers(ctx)
	for info := range list.Info() {
		if info.Config.AckWait == lease {
			continue
		}
		cfg := info.Config
		cfg.AckWait = lease
		if _, err := stream.UpdateConsumer(ctx, cfg); err != nil && !errors.Is(err, jetstream.ErrConsumerDoesNotExist) {
			return fmt.Errorf("update consumer %s: %w", info.Name, err)
		}
	}
	if err := list.Err(); err != nil {
		return fmt.Errorf("list the consumers of %s: %w", StreamWork, err)
	}
	return nil
}
