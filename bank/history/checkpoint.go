package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"sync"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/messages"
)

// Signer signs in a site's name; an nkeys.KeyPair is one.
type Signer interface {
	Sign(data []byte) ([]byte, error)
	PublicKey() (string, error)
}

// Endorser is a signer whose key was rotated: another, which the site's credentials
// name, vouches for it.
type Endorser interface {
	AccountKey() string
	Endorse(key string) ([]byte, error)
}

// Sign makes a checkpoint of all but the key and the signature. It is an error if the
// signer's key changes at that moment: sign again.
func Sign(s Signer, c messages.Checkpoint) (messages.Checkpoint, error) {
	var err error
	if c.Key, err = s.PublicKey(); err != nil {
		return c, fmt.Errorf("signing a checkpoint: %w", err)
	}
	if c.Signature, err = s.Sign(c.Signed()); err != nil {
		return c, fmt.Errorf("signing a checkpoint: %w", err)
	}
	if e, ok := s.(Endorser); ok && e.AccountKey() != c.Key {
		if c.Endorsement, err = e.Endorse(c.Key); err != nil {
			return c, fmt.Errorf("signing a checkpoint: %w", err)
		}
	}
	return c, Verify(&c)
}

// Trusted says whether the key that signed a checkpoint is a trusted one, or is
// endorsed by it.
func Trusted(c *messages.Checkpoint, trusted string) bool {
	if c.Key == trusted {
		return true
	}
	key, err := nkeys.FromPublicKey(trusted)
	return err == nil && key.Verify(messages.EndorsedKey(c.Site, c.Key), c.Endorsement) == nil
}

// Verify checks a checkpoint's signature by the key that it names. Whether the
// key is the site's is the caller's to know.
func Verify(c *messages.Checkpoint) error {
	key, err := nkeys.FromPublicKey(c.Key)
	if err != nil {
		return fmt.Errorf("the checkpoint of %d records names no key: %w", c.Records, err)
	}
	if err := key.Verify(c.Signed(), c.Signature); err != nil {
		return fmt.Errorf("the checkpoint of %d records does not have the signature of key %s", c.Records, c.Key)
	}
	return nil
}

const checkpointsName = "checkpoints"

// Checkpoints are the signed checkpoints of a replica, in the order of their
// records. They are safe for concurrent use.
type Checkpoints struct {
	files Files // nil: only in memory

	mu   sync.Mutex
	list []messages.Checkpoint
}

// ReadCheckpoints reads those that a directory has. A last line that a crash
// cut is left out: the next checkpoint comes soon.
func ReadCheckpoints(files Files) (*Checkpoints, error) {
	c := &Checkpoints{files: files}
	if files == nil {
		return c, nil
	}
	text, err := load(files, checkpointsName)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the bank's checkpoints: %w", err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	for i, line := range lines {
		var one messages.Checkpoint
		if err := json.Unmarshal(line, &one); err != nil {
			if i >= len(lines)-2 {
				break
			}
			return nil, messages.Errorf(messages.Internal, "the bank's checkpoints: line %d of file %s cannot be read: %v; remove the file, and sign a new one", i+1, checkpointsName, err)
		}
		c.list = append(c.list, one)
	}
	return c, nil
}

// Last is the latest; false if there is none.
func (c *Checkpoints) Last() (messages.Checkpoint, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.list) == 0 {
		return messages.Checkpoint{}, false
	}
	return c.list[len(c.list)-1], true
}

// Add keeps a checkpoint, of more records than the last.
func (c *Checkpoints) Add(one messages.Checkpoint) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.list); n > 0 && c.list[n-1].Records >= one.Records {
		return nil
	}
	if c.files != nil {
		line, err := json.Marshal(one)
		if err != nil {
			return err
		}
		if err := c.files.Append(checkpointsName, append(line, '\n')); err != nil {
			return fmt.Errorf("the bank's checkpoints: %w", err)
		}
	}
	c.list = append(c.list, one)
	return nil
}

// After returns up to so many checkpoints of more than so many records, and
// whether there are more.
func (c *Checkpoints) After(records uint64, most int) ([]messages.Checkpoint, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := sort.Search(len(c.list), func(i int) bool { return c.list[i].Records > records })
	page := c.list[first:min(len(c.list), first+most)]
	return slices.Clone(page), first+most < len(c.list)
}

// Part returns a part of a segment's file, and the length of the whole.
func Part(files Files, first uint64, offset int64, most int) ([]byte, int64, error) {
	f, err := files.Open(nameOf(first))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, messages.Errorf(messages.NotFound, "there is no full segment that begins with record %d", first)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("the bank's history: %w", err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil || offset >= size {
		return nil, size, err
	}
	part := make([]byte, min(int64(most), size-offset))
	return part, size, readFull(f, part, offset)
}
