package bus

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
)

func bucket(t *testing.T, b Bus, name string, size int64) Objects {
	t.Helper()
	o, err := b.Objects(within(t), name, BucketConfig{MaxAge: time.Hour, MaxBytes: size})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestObjects(t *testing.T) {
	eachBus(t, func(t *testing.T, connect grid) {
		ctx := within(t)
		mine := bucket(t, connect(t, "$auctioneer"), "FILES_west", 8<<20)
		theirs := bucket(t, connect(t, "$auctioneer"), "FILES_west", 8<<20)
		for i, data := range [][]byte{{}, {0}, bytes.Repeat([]byte("candor\n"), 100_000)} {
			name := fmt.Sprintf("piece.%d", i)
			if err := mine.Put(ctx, name, []byte("earlier")); err != nil {
				t.Fatal(err)
			}
			if err := mine.Put(ctx, name, data); err != nil {
				t.Fatal(err)
			}
			got, at, err := theirs.Get(ctx, name)
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("%s: %d bytes, %v; want %d bytes", name, len(got), err, len(data))
			}
			if since := time.Since(at); since < -time.Minute || since > patience {
				t.Errorf("%s was put %v ago", name, since)
			}
		}
		other := bucket(t, connect(t, "$auctioneer"), "FILES_east", 8<<20)
		if _, _, err := other.Get(ctx, "piece.1"); messages.KindOf(err) != messages.NotFound {
			t.Errorf("an object of another bucket: %v, want NotFound", err)
		}
	})
}

func TestFullBucketRefuses(t *testing.T) {
	eachBus(t, func(t *testing.T, connect grid) {
		ctx := within(t)
		o := bucket(t, connect(t, "$auctioneer"), "FILES_small", 100_000)
		if err := o.Put(ctx, "first", make([]byte, 60_000)); err != nil {
			t.Fatal(err)
		}
		if err := o.Put(ctx, "second", make([]byte, 60_000)); messages.KindOf(err) != messages.Exhausted {
			t.Errorf("beyond the bucket's size: %v, want Exhausted", err)
		}
		if got, _, err := o.Get(ctx, "first"); err != nil || len(got) != 60_000 {
			t.Errorf("the object from before: %d bytes, %v", len(got), err)
		}
		if _, _, err := o.Get(ctx, "second"); messages.KindOf(err) != messages.NotFound {
			t.Errorf("the object that was refused: %v, want NotFound", err)
		}
	})
}

func TestObjectsRefuse(t *testing.T) {
	eachBus(t, func(t *testing.T, connect grid) {
		ctx, b := within(t), connect(t, "$auctioneer")
		good := BucketConfig{MaxAge: time.Hour, MaxBytes: 1 << 20}
		for name, c := range map[string]BucketConfig{"a.b": good, "": good, "forever": {MaxBytes: 1}, "endless": {MaxAge: time.Hour}} {
			if _, err := b.Objects(ctx, name, c); messages.KindOf(err) != messages.Invalid {
				t.Errorf("bucket %q, %+v: %v, want Invalid", name, c, err)
			}
		}
		o := bucket(t, b, "FILES_west", 1<<20)
		for _, name := range []string{"", "a b", "a/b", "ä", "*", ".a", "a.", "a..b", strings.Repeat("a", 257)} {
			if err := o.Put(ctx, name, nil); messages.KindOf(err) != messages.Invalid {
				t.Errorf("put %q: %v, want Invalid", name, err)
			}
			if _, _, err := o.Get(ctx, name); messages.KindOf(err) != messages.Invalid {
				t.Errorf("get %q: %v, want Invalid", name, err)
			}
		}
	})
}

// A connection without permission must not be able to use a bucket. In memory, the permission for the bucket's subject
// decides. Over NATS, the permission for JetStream decides, which only services have.
func TestObjectsNeedPermission(t *testing.T) {
	n := NewMemory()
	n.Permit(func(a Access) bool { return a.Name != "eve" || a.Subject != objectSubject("FILES_west", ">") })
	for _, c := range []struct {
		bucket string
		want   bool
	}{{"FILES_west", false}, {"FILES_east", true}} {
		_, err := n.Connect("eve").Objects(within(t), c.bucket, BucketConfig{MaxAge: time.Hour, MaxBytes: 1})
		if denied := messages.KindOf(err) == messages.PermissionDenied; denied == c.want {
			t.Errorf("%s: %v, want allowed: %v", c.bucket, err, c.want)
		}
	}
}
