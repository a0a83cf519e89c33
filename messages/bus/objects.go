package bus

import (
	"context"
	"regexp"
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
)

// Objects is a bucket of named byte strings, each kept for a limited time. A caller must cut an object that is larger
// than a message into pieces. Objects is safe for concurrent use.
type Objects interface {
	// Put stores an object in place of one with the same name. If the bucket is full, it returns Exhausted and stores
	// nothing.
	Put(ctx context.Context, name string, data []byte) error
	// Get returns an object and the time when it was stored. It returns NotFound if there is none.
	Get(ctx context.Context, name string) ([]byte, time.Time, error)
}

// BucketConfig limits a bucket.
type BucketConfig struct {
	MaxAge   time.Duration // older objects are removed
	MaxBytes int64         // bytes of all objects, including the store's overhead
}

// objectName matches the valid names of objects: tokens of a subject.
var objectName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_=-]+(\.[A-Za-z0-9_=-]+)*$`) })

// objectSubject returns the NATS subject of an object. With the name ">", it is the pattern of all objects of a bucket.
// Permissions for a bucket are given for this pattern.
func objectSubject(bucket, name string) string { return "objects." + bucket + "." + name }

// maxObjectName bounds the bytes of a name.
const maxObjectName = 256

func checkBucket(bucket string, c BucketConfig) error {
	if !streamName().MatchString(bucket) {
		return messages.Errorf(messages.Invalid, "bucket %q: needs a name of letters, digits, '-' and '_'", clip(bucket))
	}
	if c.MaxAge <= 0 || c.MaxBytes <= 0 {
		return messages.Errorf(messages.Invalid, "bucket %s: age %v and size %d must be above 0", bucket, c.MaxAge, c.MaxBytes)
	}
	return nil
}

func checkObject(name string) error {
	if len(name) > maxObjectName || !objectName().MatchString(name) {
		return messages.Errorf(messages.Invalid, "object %q: needs a name of letters, digits, '-', '_' and '=', with '.' between, at most %d bytes", clip(name), maxObjectName)
	}
	return nil
}

func noObject(bucket, name string) error {
	return messages.Errorf(messages.NotFound, "bucket %s has no object %s", bucket, clip(name))
}

func noBucket(bucket string) error {
	return messages.Errorf(messages.NotFound, "there is no bucket %s", clip(bucket))
}

func bucketFull(bucket string) error {
	return messages.Errorf(messages.Exhausted, "bucket %s is full; the site removes objects by their age", bucket)
}
