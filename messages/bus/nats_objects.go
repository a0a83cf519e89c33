package bus

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// natsObjects is a bucket in JetStream files: a stream with one subject for each object. The latest message of a
// subject is the object, so an object is either complete or absent. JetStream's own object store cuts objects into
// several messages, which may not all find room. Reads go to the stream's leader (AllowDirect is off), which has every
// acknowledged message.
type natsObjects struct {
	bus    *natsBus
	bucket string
	stream jetstream.Stream
}

// Objects implements [Bus].
func (b *natsBus) Objects(ctx context.Context, bucket string, c BucketConfig) (Objects, error) {
	if err := checkBucket(bucket, c); err != nil {
		return nil, err
	}
	ctx, unwatch := b.watch.begin(ctx, "$JS.API")
	defer unwatch()
	stream, err := b.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: bucket, Subjects: []string{objectSubject(bucket, ">")}, Storage: jetstream.FileStorage, Replicas: b.replicas,
		MaxMsgsPerSubject: 1, MaxAge: c.MaxAge, MaxBytes: c.MaxBytes, Discard: jetstream.DiscardNew,
	})
	if err != nil {
		return nil, streamError(ctx, bucket, err)
	}
	return &natsObjects{bus: b, bucket: bucket, stream: stream}, nil
}

// Kept implements [Bus].
func (b *natsBus) Kept(ctx context.Context, bucket string) (Objects, []string, error) {
	if !streamName().MatchString(bucket) {
		return nil, nil, noBucket(bucket)
	}
	ctx, unwatch := b.watch.begin(ctx, "$JS.API")
	defer unwatch()
	stream, err := b.js.Stream(ctx, bucket)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil, noBucket(bucket)
	}
	if err != nil {
		return nil, nil, streamError(ctx, bucket, err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(objectSubject(bucket, ">")))
	if err != nil {
		return nil, nil, streamError(ctx, bucket, err)
	}
	var names []string
	for subject := range info.State.Subjects {
		names = append(names, strings.TrimPrefix(subject, objectSubject(bucket, "")))
	}
	slices.Sort(names)
	return &natsObjects{bus: b, bucket: bucket, stream: stream}, names, nil
}

// Put implements [Objects].
func (o *natsObjects) Put(ctx context.Context, name string, data []byte) error {
	if err := checkObject(name); err != nil {
		return err
	}
	subject := objectSubject(o.bucket, name)
	ctx, unwatch := o.bus.watch.begin(ctx, subject)
	defer unwatch()
	_, err := o.bus.js.Publish(ctx, subject, data)
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && api.ErrorCode == storeFull {
		return bucketFull(o.bucket)
	}
	if err != nil {
		return streamError(ctx, o.bucket, err)
	}
	return nil
}

// storeFull is a server's error code for a message that does not fit into its stream (JSStreamStoreFailedF).
const storeFull = 10077

// Get implements [Objects].
func (o *natsObjects) Get(ctx context.Context, name string) ([]byte, time.Time, error) {
	if err := checkObject(name); err != nil {
		return nil, time.Time{}, err
	}
	ctx, unwatch := o.bus.watch.begin(ctx, "$JS.API")
	defer unwatch()
	found, err := o.stream.GetLastMsgForSubject(ctx, objectSubject(o.bucket, name))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, time.Time{}, noObject(o.bucket, name)
	}
	if err != nil {
		return nil, time.Time{}, streamError(ctx, o.bucket, err)
	}
	return found.Data, found.Time, nil
}
