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
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/proof"
)

// Endorser is a signer whose key has been rotated. Its new key differs from the key in the site's credentials. So the
// key in the credentials, or a successor of it, endorses the new key with a signature.
type Endorser interface {
	AccountKey() string
	Endorse(key string) ([]byte, error)
	// Succession returns a chain of keys. It begins with AccountKey and ends with the key that Endorse uses now. Each
	// key is signed with the key before it.
	Succession() []messages.Succession
}

// Sign sets the key and the signature of a checkpoint. If the signer's key changes meanwhile, it returns an error, and
// the caller can sign again.
func Sign(s proof.Signer, c money.Checkpoint) (money.Checkpoint, error) {
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

// Trusted reports whether a checkpoint's key is the trusted key, or is endorsed by it or one of its successors.
func Trusted(c *money.Checkpoint, trusted string) bool {
	if c.Key == trusted {
		return true
	}
	return proof.Verified(proof.Successor(c.Site, trusted, c.Succession), money.EndorsedKey(c.Site, c.Key), c.Endorsement)
}

// Verify checks a checkpoint's signature with the key in the checkpoint. The caller must check that this key belongs
// to the site.
func Verify(c *money.Checkpoint) error {
	key, err := nkeys.FromPublicKey(c.Key)
	if err != nil {
		return fmt.Errorf("the checkpoint of %d records names no key: %w", c.Records, err)
	}
	if err := key.Verify(c.Signed(), c.Signature); err != nil {
		return fmt.Errorf("the checkpoint of %d records does not have the signature of key %s", c.Records, c.Key)
	}
	return nil
}

// CheckpointsFile is the name of the file of checkpoints.
const CheckpointsFile = "checkpoints"

// Checkpoints has the signed checkpoints of a replica, in the order of their records. It is
// safe for concurrent use.
type Checkpoints struct {
	files Files // nil if the checkpoints are only in memory

	mu   sync.Mutex
	list []money.Checkpoint
	torn bool // the whole file must be written again: it is damaged, or too long

	damaged []int // numbers of the damaged lines when the file was read
}

// ReadCheckpoints reads the checkpoints in a directory. It skips damaged lines, and a checkpoint that a crash or a full
// disk cut off. [Checkpoints.Damaged] reports damaged lines, and the file keeps them until the next checkpoint.
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
		good := slices.DeleteFunc(slices.Clone(found), func(one money.Checkpoint) bool { return Verify(&one) != nil })
		if len(good) < len(found) || len(found) == 0 && i < len(lines)-1 {
			c.damaged = append(c.damaged, i+1)
		}
		c.list = append(c.list, good...)
		c.torn = c.torn || !whole || len(good) < len(found)
	}
	return c, nil
}

// readCheckpoints reads the checkpoints on a line. The result `whole` is false if the line also has anything else, such
// as a part of a checkpoint.
func readCheckpoints(line []byte) (found []money.Checkpoint, whole bool) {
	var one money.Checkpoint
	if json.Unmarshal(line, &one) == nil {
		return []money.Checkpoint{one}, true
	}
	begins := []byte(`{"`) // the beginning of a checkpoint; it does not occur inside one
	for _, piece := range bytes.Split(line, begins) {
		one = money.Checkpoint{}
		if json.Unmarshal(slices.Concat(begins, piece), &one) == nil {
			found = append(found, one)
		}
	}
	return found, false
}

// Damaged returns an error that names the damaged lines of the file, or nil if there are none.
func (c *Checkpoints) Damaged() error {
	if len(c.damaged) == 0 {
		return nil
	}
	return messages.Errorf(messages.Internal, "the bank's checkpoints: line %d of file %s is damaged (%d damaged lines in all) and is ignored; compare the file with the copies that auditors have", c.damaged[0], CheckpointsFile, len(c.damaged))
}

// Last returns the latest checkpoint, or false if there is none.
func (c *Checkpoints) Last() (money.Checkpoint, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.list) == 0 {
		return money.Checkpoint{}, false
	}
	return c.list[len(c.list)-1], true
}

// A checkpoint covers all records before it. So in each block of blockRecords records, only the last checkpoint is
// needed. When there are mostCovered checkpoints that are not needed, they are removed.
const (
	blockRecords = 10_000
	mostCovered  = 1000
)

func lastOfBlocks(list []money.Checkpoint) (last []money.Checkpoint) {
	for i, c := range list {
		if i == len(list)-1 || c.Records/blockRecords != list[i+1].Records/blockRecords {
			last = append(last, c)
		}
	}
	return last
}

// Add adds a checkpoint. It must cover more records than the last one.
func (c *Checkpoints) Add(one money.Checkpoint) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.list); n > 0 && c.list[n-1].Records >= one.Records {
		return nil
	}
	if stay := lastOfBlocks(c.list); len(c.list)-len(stay) >= mostCovered {
		c.list, c.torn = stay, true // the whole file is written again
	}
	if err := c.save(one); err != nil {
		return fmt.Errorf("the bank's checkpoints: %w", err)
	}
	c.list = append(c.list, one)
	return nil
}

// save appends a checkpoint to the file. If a line of the file is incomplete, or there are too many checkpoints, save
// writes the whole file again.
func (c *Checkpoints) save(one money.Checkpoint) error {
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
		c.torn = err != nil // after an error, the file may have a part of the checkpoint
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

// After returns the checkpoints that cover more than the given number of records. It returns the earliest of them, at
// most `most`. It also reports whether there are more.
func (c *Checkpoints) After(records uint64, most int) ([]money.Checkpoint, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := sort.Search(len(c.list), func(i int) bool { return c.list[i].Records > records })
	page := c.list[first:min(len(c.list), first+most)]
	return slices.Clone(page), first+most < len(c.list)
}

// Part returns a part of a segment's file, and the length of the whole file.
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
