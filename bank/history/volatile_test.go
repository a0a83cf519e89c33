package history

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
)

// Volatile keeps files in memory. A power loss leaves only what was synced. The test can make any operation lose the
// power.
type Volatile struct {
	mu      sync.Mutex
	now     map[string]*content
	durable map[string]*content
	left    int // operations until the power is lost; negative means never
	ops     int
}

// content is the content of a file: what a reader gets now, and what was synced.
type content struct{ now, synced []byte }

// ErrPower is the error of every operation after the power is lost, until Restart.
var ErrPower = errors.New("power is lost")

// NewVolatile returns an empty directory.
func NewVolatile() *Volatile {
	return &Volatile{now: map[string]*content{}, durable: map[string]*content{}, left: -1}
}

// FailAt makes the power fail in place of one of the next operations. With 1, this is the next operation.
func (v *Volatile) FailAt(operation int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.left = operation - 1
}

// Operations returns how many operations were made on the files until now.
func (v *Volatile) Operations() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.ops
}

type Fate int

const (
	Lost Fate = iota // all data that was not synced is lost
	Torn             // the first half of the file stays
	Kept             // all data that was not synced happens to stay
)

// Restart simulates a power loss and a start. If the power was lost before, Restart only simulates the start. The
// parameter `unsynced` says what happens to data that was not synced.
func (v *Volatile) Restart(unsynced Fate) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.left = -1
	names := v.durable
	if unsynced != Lost {
		names = v.now
	}
	after := map[string]*content{}
	for name, c := range names {
		b := c.synced
		switch {
		case unsynced == Kept:
			b = c.now
		case unsynced == Torn && c.synced == nil:
			b = c.now[:len(c.now)/2]
		}
		after[name] = &content{now: b, synced: b}
	}
	v.now, v.durable = after, maps.Clone(after)
}

// operate carries out an operation on the disk, and counts it. After a set number of operations the simulated power is
// lost, and every further operation fails.
func (v *Volatile) operate(do func() error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.left == 0 {
		return ErrPower
	}
	v.left--
	v.ops++
	return do()
}

func (v *Volatile) Write(name string, parts ...[]byte) error {
	return v.operate(func() error {
		v.now[name] = &content{now: bytes.Join(parts, nil)}
		return nil
	})
}

func (v *Volatile) Append(name string, data []byte) error {
	return v.operate(func() error {
		c := v.now[name]
		if c == nil {
			c = &content{}
			v.now[name] = c
		}
		c.now = append(slices.Clone(c.now), data...)
		return nil
	})
}

func (v *Volatile) Sync(name string) error {
	return v.operate(func() error {
		c := v.now[name]
		if c == nil {
			return fs.ErrNotExist
		}
		c.synced = c.now
		return nil
	})
}

func (v *Volatile) Commit() error {
	return v.operate(func() error {
		v.durable = maps.Clone(v.now)
		return nil
	})
}

func (v *Volatile) List() ([]string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Sorted(maps.Keys(v.now)), nil
}

func (v *Volatile) Open(name string) (File, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.now[name]
	if c == nil {
		return nil, fs.ErrNotExist
	}
	return opened{bytes.NewReader(c.now)}, nil
}

// Content returns the content of a file, or nil if there is none.
func (v *Volatile) Content(name string) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	if c := v.now[name]; c != nil {
		return c.now
	}
	return nil
}

// Damage replaces the content of a file, or removes the file if b is nil.
func (v *Volatile) Damage(name string, b []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.now, name)
	if b != nil {
		v.now[name] = &content{now: b, synced: b}
	}
}

type opened struct{ *bytes.Reader }

func (o opened) Size() (int64, error) { return o.Reader.Size(), nil }
func (o opened) Close() error         { return nil }

var _ io.ReaderAt = opened{}
