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
	"github.com/candor-grid/candor/messages/proof"
)

// Endorser is a signer whose key was rotated: another, which the site's credentials
// name, vouches for it.
type Endorser interface {
	AccountKey() string
	Endorse(key string) ([]byte, error)
	// Succession leads from AccountKey to the key that endorses.
	Succession() []messages.Succession
}

// Sign fills in the key and the signature of a checkpoint. It is an error if the
// signer's key changes meanwhile: sign again.
func Sign(s proof.Signer, c messages.Checkpoint) (messages.Checkpoint, error) {
	var err error
	if c.Key, err = s.PublicKey(); err != nil {
		return c, fmt.Errorf("signing a checkpoint: %w", err)
	}
	if c.Signature, err = s.Sign(c.Signed()); err != nil {
		return c, fmt.Errorf("signing a checkpoint: %w", err)
	}
	if e, ok := s.(Endorser); ok && e.AccountKey() != c.Key {
		c.Succession = e.Succession()
		if c.Endorsement, err = e.Endorse(c.Key); err != nil {
			return c, fmt.Errorf("signing a checkpoint: %w", err)
		}
	}
	return c, Verify(&c)
}

// Trusted says whether the key that signed a checkpoint is a trusted one, or is
// endorsed by it, or by a key that follows it.
func Trusted(c *messages.Checkpoint, trusted string) bool {
	if c.Key == trusted {
		return true
	}
	return proof.Verified(proof.Successor(c.Site, trusted, c.Succession), messages.EndorsedKey(c.Site, c.Key), c.Endorsement)
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

// CheckpointsFile is the name of the file that has them.
const CheckpointsFile = "checkpoints"

// Checkpoints are the signed checkpoints of a replica, in the order of their
// records. They are safe for concurrent use.
type Checkpoints struct {
	files Files // nil: only in memory

	mu   sync.Mutex
	list []messages.Checkpoint
	torn bool // the file ends, or has a line, in the middle of a checkpoint

	damaged []int // lines that were there when the file was read
}

// ReadCheckpoints reads those that a directory has. What a crash or a full disk cut
// off is left out, for the next checkpoint comes soon, and stands before the next
// one in its line where nothing cut it away. Lines that are damaged are left out too, and
// reported by [Checkpoints.Damaged]; the file keeps them until the next checkpoint.
func ReadCheckpoints(files Files) (*Checkpoints, error) {
	c := &Checkpoints{files: files}
	if files == nil {
		return c, nil
	}
	text, err := load(files, CheckpointsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the bank's checkpoints: %w", err)
	}
	c.torn = len(text) > 0 && text[len(text)-1] != '\n'
	lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	for i, line := range lines {
		found, whole := readCheckpoints(line)
		good := slices.DeleteFunc(slices.Clone(found), func(one messages.Checkpoint) bool { return Verify(&one) != nil })
		if len(good) < len(found) || len(found) == 0 && i < len(lines)-1 {
			c.damaged = append(c.damaged, i+1)
		}
		c.list = append(c.list, good...)
		c.torn = c.torn || !whole || len(good) < len(found)
	}
	return c, nil
}

// readCheckpoints reads the checkpoints in a line, and reports whether it is one
// and nothing else: a line that was cut has the next one behind it.
func readCheckpoints(line []byte) (found []messages.Checkpoint, whole bool) {
	var one messages.Checkpoint
	if json.Unmarshal(line, &one) == nil {
		return []messages.Checkpoint{one}, true
	}
	begins := []byte(`{"`) // as a checkpoint, and nothing within one
	for _, piece := range bytes.Split(line, begins) {
		one = messages.Checkpoint{}
		if json.Unmarshal(slices.Concat(begins, piece), &one) == nil {
			found = append(found, one)
		}
	}
	return found, false
}

// Damaged is an error that names the lines of the file which are no checkpoints that
// somebody signed; nil, if there are none.
func (c *Checkpoints) Damaged() error {
	if len(c.damaged) == 0 {
		return nil
	}
	return messages.Errorf(messages.Internal, "the bank's checkpoints: line %d of file %s is damaged (%d in all), and does not count; compare with the copies that auditors have", c.damaged[0], CheckpointsFile, len(c.damaged))
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
	if err := c.save(one); err != nil {
		return fmt.Errorf("the bank's checkpoints: %w", err)
	}
	c.list = append(c.list, one)
	return nil
}

// save writes a checkpoint behind those before it; all of them anew where the file
// has a line that was cut.
func (c *Checkpoints) save(one messages.Checkpoint) error {
	if c.files == nil {
		return nil
	}
	line, err := json.Marshal(one)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if !c.torn {
		err := c.files.Append(CheckpointsFile, line)
		c.torn = err != nil // a part of it may be there
		return err
	}
	var all []byte
	for i := range c.list {
		kept, err := json.Marshal(c.list[i])
		if err != nil {
			return err
		}
		all = append(append(all, kept...), '\n')
	}
	if err := c.files.Write(CheckpointsFile, all, line); err != nil {
		return err
	}
	c.torn = false
	return c.files.Sync(CheckpointsFile)
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
