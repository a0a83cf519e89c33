package bus

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// natsObjects is a bucket kept by JetStream in files, with a message for each
// object: it is there whole or not at all. JetStream's own object store cuts
// objects into messages; one that it finds no room for may leave its name behind,
// for whose content a reader then waits in vain.
type natsObjects struct {
	bus    *natsBus
	bucket string
	store  jetstream.KeyValue
}

// Objects implements [ObjectStore].
func (b *natsBus) Objects(ctx context.Context, bucket string, c BucketConfig) (Objects, error) {
	if err := checkBucket(bucket, c); err != nil {
		return nil, err
	}
	ctx, unwatch := b.watch.begin(ctx, "$JS.API")
	defer unwatch()
	store, err := b.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: bucket, TTL: c.MaxAge, MaxBytes: c.MaxBytes, Storage: jetstream.FileStorage, Replicas: b.replicas,
	})
	if err != nil {
		return nil, streamError(ctx, bucket, err)
	}
	return &natsObjects{bus: b, bucket: bucket, store: store}, nil
}

// Put implements [Objects].
func (o *natsObjects) Put(ctx context.Context, name string, data []byte) error {
	if err := checkObject(name); err != nil {
		return err
	}
	ctx, unwatch := o.bus.watch.begin(ctx, "$KV."+o.bucket+"."+name)
	defer unwatch()
	_, err := o.store.Put(ctx, name, data)
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == storeFull {
		return bucketFull(o.bucket)
	}
	if err != nil {
		return streamError(ctx, o.bucket, err)
	}
	return nil
}

// storeFull is the code with which a server refuses a message that its stream has
// no room for (JSStreamStoreFailedF).
const storeFull = 10077

// Get implements [Objects].
func (o *natsObjects) Get(ctx context.Context, name string) ([]byte, time.Time, error) {
	if err := checkObject(name); err != nil {
		return nil, time.Time{}, err
	}
	ctx, unwatch := o.bus.watch.begin(ctx, "$JS.API")
	defer unwatch()
	found, err := o.store.Get(ctx, name)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, time.Time{}, noObject(o.bucket, name)
	}
	if err != nil {
		return nil, time.Time{}, streamError(ctx, o.bucket, err)
	}
	return found.Value(), found.Created(), nil
}
