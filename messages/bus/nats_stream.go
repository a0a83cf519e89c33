package bus

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
)

// dedupeWindow is how long a stream remembers the ids of its messages. maxStreamBytes is the stream's maximum size on
// disk; above it the oldest messages are dropped.
const (
	dedupeWindow   = 2 * time.Minute
	maxStreamBytes = 256 << 20
)

// A reader gets messages from a consumer, which the NATS server keeps for it. The reader requests messages again and
// again. Each request waits at most pullExpiry for messages. After two missing heartbeats, the reader makes a new
// consumer, because the server may have lost the old one in a restart.
const (
	pullExpiry    = 10 * time.Second
	pullHeartbeat = time.Second
)

// natsStream is a stream in JetStream files.
type natsStream struct {
	bus    *natsBus
	key    string // key of the stream in the bus's streams
	stream jetstream.Stream
}

// Stream implements [Bus]. It remembers the streams that it knows. It asks the server only for a new stream, or after a
// failure, because the server syncs a file each time that it is asked.
func (b *natsBus) Stream(ctx context.Context, name string, subjects []string) (Stream, error) {
	if err := checkStream(name, subjects); err != nil {
		return nil, err
	}
	key := name + " " + strings.Join(subjects, " ")
	if known, ok := b.streams.Load(key); ok {
		return known.(*natsStream), nil
	}
	ctx, unwatch := b.watch.begin(ctx, "$JS.API")
	defer unwatch()
	config := jetstream.StreamConfig{
		Name: name, Subjects: subjects, Storage: jetstream.FileStorage, Replicas: b.replicas,
		Duplicates: dedupeWindow, MaxBytes: maxStreamBytes, Discard: jetstream.DiscardOld,
	}
	if b.replicas <= 1 { // with one server, messages are not synced: streams hold nothing that users need to keep
		config.PersistMode = jetstream.AsyncPersistMode
	}
	stream, err := b.js.CreateOrUpdateStream(ctx, config)
	// the mode of an existing stream cannot be changed
	if _, refused := errors.AsType[jetstream.JetStreamError](err); refused && config.PersistMode == jetstream.AsyncPersistMode {
		config.PersistMode = jetstream.DefaultPersistMode
		stream, err = b.js.CreateOrUpdateStream(ctx, config)
	}
	if err != nil {
		return nil, streamError(ctx, name, err)
	}
	s := &natsStream{bus: b, key: key, stream: stream}
	b.streams.Store(key, s)
	return s, nil
}

// failed returns the error with an explanation. It also makes sure that the next use of the stream opens the stream
// again.
func (s *natsStream) failed(ctx context.Context, name string, err error) error {
	s.bus.streams.Delete(s.key)
	return streamError(ctx, name, err)
}

func streamError(ctx context.Context, name string, err error) error {
	var denial *messages.Error
	switch {
	case errors.As(context.Cause(ctx), &denial):
		return denial
	case errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse):
		return messages.Errorf(messages.Unavailable, "no stream %s accepts the message: is JetStream enabled, and does the stream have the subject?", clip(name))
	case ctx.Err() != nil:
		return noAnswer(ctx, name)
	case errors.Is(err, nats.ErrMaxPayload):
		return sendError(name, err)
	}
	return messages.Errorf(messages.Unavailable, "stream %s: %v", clip(name), err)
}

// Append implements [Stream].
func (s *natsStream) Append(ctx context.Context, subject, id string, payload []byte) error {
	if err := checkSubject(subject); err != nil {
		return err
	}
	ctx, unwatch := s.bus.watch.begin(ctx, subject)
	defer unwatch()
	var options []jetstream.PublishOpt
	if id != "" {
		options = append(options, jetstream.WithMsgID(id))
	}
	if _, err := s.bus.js.Publish(ctx, subject, payload, options...); err != nil {
		return s.failed(ctx, subject, err)
	}
	return nil
}

// Consume implements [Stream].
func (s *natsStream) Consume(ctx context.Context, after uint64, handle func(uint64, string, []byte)) (Subscription, error) {
	ctx, unwatch := s.bus.watch.begin(ctx, "$JS.API")
	defer unwatch()
	name := s.stream.CachedInfo().Config.Name
	consumer, err := s.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: after + 1,
	})
	if err != nil {
		return nil, s.failed(ctx, name, err)
	}
	last := after
	reading, err := consumer.Consume(func(m jetstream.Msg) {
		meta, err := m.Metadata()
		if err != nil || meta.Sequence.Stream <= last {
			return // not a message of the stream, or read already before the consumer was renewed
		}
		last = meta.Sequence.Stream
		handle(last, m.Subject(), m.Data())
	}, jetstream.PullExpiry(pullExpiry), jetstream.PullHeartbeat(pullHeartbeat), jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
		s.bus.metrics.errors.Inc()
		s.bus.log.Warn("reading the stream broke off; reading goes on after the last message", zap.String("stream", name), zap.Error(err))
	}))
	if err != nil {
		return nil, streamError(ctx, name, err)
	}
	end := func() error {
		reading.Stop()
		return nil
	}
	return s.bus.register(&subscription{&s.bus.subscriptions, end, reading.Closed()})
}
