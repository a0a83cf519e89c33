package bus

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// memoryBucket keeps objects as long as the Network exists. It ignores MaxAge.
type memoryBucket struct {
	name string

	mu       sync.Mutex
	maxBytes int64
	bytes    int64
	kept     map[string]memoryObject
}

type memoryObject struct {
	data []byte
	at   time.Time
}

type memoryObjects struct {
	*memoryBucket
	bus *memoryBus
}

// Objects implements [Bus].
func (b *memoryBus) Objects(ctx context.Context, bucket string, c BucketConfig) (Objects, error) {
	if err := checkBucket(bucket, c); err != nil {
		return nil, err
	}
	if err := b.allowed(true, objectSubject(bucket, ">")); err != nil {
		return nil, err
	}
	n := b.network
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.buckets[bucket]
	if k == nil {
		k = &memoryBucket{name: bucket, kept: make(map[string]memoryObject)}
		n.buckets[bucket] = k
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.maxBytes = c.MaxBytes
	return memoryObjects{k, b}, nil
}

// Kept implements [Bus].
func (b *memoryBus) Kept(_ context.Context, bucket string) (Objects, []string, error) {
	if err := b.allowed(true, objectSubject(bucket, ">")); err != nil {
		return nil, nil, err
	}
	n := b.network
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.buckets[bucket]
	if k == nil {
		return nil, nil, noBucket(bucket)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return memoryObjects{k, b}, slices.Sorted(maps.Keys(k.kept)), nil
}

// Put implements [Objects].
func (o memoryObjects) Put(ctx context.Context, name string, data []byte) error {
	if err := o.check(ctx, name); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	more := int64(len(data) - len(o.kept[name].data))
	if o.bytes+more > o.maxBytes {
		return bucketFull(o.name)
	}
	o.bytes += more
	o.kept[name] = memoryObject{bytes.Clone(data), time.Now()}
	return nil
}

// Get implements [Objects].
func (o memoryObjects) Get(ctx context.Context, name string) ([]byte, time.Time, error) {
	if err := o.check(ctx, name); err != nil {
		return nil, time.Time{}, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	found, ok := o.kept[name]
	if !ok {
		return nil, time.Time{}, noObject(o.name, name)
	}
	return bytes.Clone(found.data), found.at, nil
}

func (o memoryObjects) check(ctx context.Context, name string) error {
	if err := checkObject(name); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return noAnswer(ctx, o.name)
	}
	return o.bus.allowed(true, objectSubject(o.name, ">"))
}
