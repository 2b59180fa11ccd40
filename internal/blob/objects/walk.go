package objects

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
)

// page is how many blobs Walk holds at once, some 50 MB of them. A stream has no order
// of its own, so a store with more is read once for each page.
const page = 1 << 20

func (k *keeper) Walk(ctx context.Context, fn func(blob.Info) error) error {
	return k.walk(ctx, page, fn)
}

func (k *keeper) walk(ctx context.Context, page int, fn func(blob.Info) error) error {
	var after blob.Ref // the zero Ref comes before all
	for {
		infos, err := k.next(ctx, after, page)
		if err != nil {
			return fmt.Errorf("blob walk: %w", err)
		}
		for _, info := range infos {
			if err := fn(info); err != nil {
				return err
			}
		}
		if len(infos) < page {
			return nil
		}
		after = infos[len(infos)-1].Ref
	}
}

// next returns the first n blobs after a reference, in order.
func (k *keeper) next(ctx context.Context, after blob.Ref, n int) ([]blob.Info, error) {
	var best smallest
	err := persist(ctx, k.js, k.patience, "", func(context.Context) error { // a long list may take longer than one try
		best = smallest{n: n}
		return k.heads(ctx, func(info blob.Info) {
			if info.Ref.Compare(after) > 0 {
				best.add(info)
			}
		})
	})
	return best.sorted(), err
}

// heads calls fn for each head in the stream, in no order. It reads no content.
func (k *keeper) heads(ctx context.Context, fn func(blob.Info)) error {
	start, stop := context.WithTimeout(ctx, oneTry)
	defer stop()
	consumer, err := k.stream.OrderedConsumer(start, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{headSubjects},
		DeliverPolicy:  jetstream.DeliverLastPerSubjectPolicy,
		HeadersOnly:    true,
	})
	if err != nil {
		return err
	}
	info, err := consumer.Info(start)
	if err != nil {
		return err
	}
	if info.NumPending == 0 {
		return nil
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	for {
		msg, err := k.await(ctx, messages)
		if err != nil {
			return err
		}
		meta, err := msg.Metadata()
		if err != nil {
			return err
		}
		ref, err := blob.Parse("sha256:" + strings.TrimPrefix(msg.Subject(), "mw.blob."))
		if err == nil { // what is no reference is no blob
			size, err := strconv.ParseInt(msg.Headers().Get(headerSize), 10, 64)
			if err != nil || size < 0 || size > blob.MaxSize {
				size = -1
			}
			fn(blob.Info{Ref: ref, Size: size})
		}
		if meta.NumPending == 0 {
			return nil
		}
	}
}

func (k *keeper) await(ctx context.Context, messages jetstream.MessagesContext) (jetstream.Msg, error) {
	ctx, stop := context.WithTimeout(ctx, min(oneTry, k.patience))
	defer stop()
	return messages.Next(jetstream.NextContext(ctx))
}

// smallest keeps the n first of what is added, in at most twice the room.
type smallest struct {
	n     int
	infos []blob.Info
}

func (s *smallest) add(info blob.Info) {
	if s.infos = append(s.infos, info); len(s.infos) >= 2*s.n {
		s.infos = s.sorted()
	}
}

func (s *smallest) sorted() []blob.Info {
	slices.SortFunc(s.infos, func(a, b blob.Info) int { return a.Ref.Compare(b.Ref) })
	// A reset consumer delivers again what it had delivered.
	s.infos = slices.CompactFunc(s.infos, func(a, b blob.Info) bool { return a.Ref == b.Ref })
	return s.infos[:min(len(s.infos), s.n)]
}
