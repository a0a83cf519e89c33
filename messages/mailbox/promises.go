package mailbox

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/candor-grid/candor/messages/durable"
)

// The file of promises is separate from the log. It holds what a replica has promised its peers: the name of its disk,
// its votes, the end of its log, and what it knows of the other replicas. If the log ends before the promised end, the
// log has lost entries.
//
// The file has two slots for the record (everything except the end of the log), and two slots for the end of the log.
// Writes go to the two slots in turn. The valid slot with the higher number counts, so after a torn write the previous
// slot counts. The record is synced before the replica acts on it. The end of the log is written after each sync of the
// log and before the entries are acknowledged, and it is synced within a second. So a loss of power can undo only the
// changes of this end in the last second. The peers remember these changes.
const (
	promisesFile   = "promises"
	recordSlot     = 16 << 10
	endSlot        = 4 << 10
	endsAt         = 2 * recordSlot
	promisesBytes  = endsAt + 2*endSlot
	slotHead       = 8 + 4 + sha256.Size
	maxPromiseBody = recordSlot - slotHead
)

const (
	standingNew      = "new"      // the replica knows no history of its group: it has never voted, and never heard a leader
	standingWhole    = "whole"    // the replica has everything that it promised to keep
	standingDoubtful = "doubtful" // the replica may have lost something that it promised to keep, so it neither votes nor leads
)

// record is the part of a replica's file of promises that seldom changes.
type record struct {
	Disk     string // 16 random bytes, new for each directory
	Standing string
	Why      string `json:",omitempty"` // why it is doubtful
	Discard  bool   `json:",omitempty"` // the next start must move the files here aside
	Version  uint64 // grows each time the group accepts another Disk
	Sealed   uint64 // entries from this index on must have a seal

	Term, VotedTerm uint64
	VotedFor        []byte

	Committed uint64 // the highest index that it knows to be committed in the group
	Settled   uint64 // the highest committed index in the replica's own log; this log may lack committed entries of the group
	Known     []diskOf
	Reigns    []reign `json:",omitempty"` // the latest reigns, in the order of the log
	Origin    origin  // the restore from a backup with which this log began

	Format int `json:",omitempty"` // version of the directory's format; see logFormat
}

// logFormat is the version of everything in a replica's directory: log, votes, promises and the form of snapshots. It
// is the highest version that this build can read. A directory without a version has version 0, which is the same
// format as version 1.
const logFormat = 1

// diskOf is what a replica knows about a disk, its own or another's.
type diskOf struct {
	ID, Disk string
	Version  uint64 // grows each time the group accepts another disk of this replica
	Floor    uint64 // the highest committed index that the disk was known to have
}

// promises is the file in which this replica keeps its promises. It has the replica's record, and the end of the
// replica's log. The fields `record` and `end` have the present content of the file.
type promises struct {
	mu     sync.Mutex
	file   *os.File
	path   string
	record record
	end    struct{ index, term uint64 }
	seqs   [2]uint64 // number of the latest slot of the record, and of the latest slot of the end
	dirty  bool      // something was written and is not synced yet
}

var errPromises = errors.New("neither of the two records in the file can be read")

// openPromises opens the file with the promises in a directory. If there is no such file, the error is os.ErrNotExist.
// If the file is damaged, the error wraps errPromises.
func openPromises(dir string) (*promises, error) {
	p := &promises{path: filepath.Join(dir, promisesFile)}
	f, err := os.OpenFile(p.path, os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	all := make([]byte, promisesBytes)
	if _, err := io.ReadFull(f, all); err != nil {
		return nil, errors.Join(fmt.Errorf("mailbox: %s: %w", p.path, errPromises), f.Close())
	}
	p.file = f
	body, seq, ok := newest(all[:recordSlot], all[recordSlot:endsAt])
	end, endSeq, endOK := newest(all[endsAt:endsAt+endSlot], all[endsAt+endSlot:])
	if !ok || !endOK || len(end) != 16 || json.Unmarshal(body, &p.record) != nil {
		return nil, errors.Join(fmt.Errorf("mailbox: %s: %w", p.path, errPromises), f.Close())
	}
	p.seqs = [2]uint64{seq, endSeq}
	p.end.index, p.end.term = binary.BigEndian.Uint64(end), binary.BigEndian.Uint64(end[8:])
	return p, nil
}

// createPromises makes a new file of promises (what this replica has told its peers about its votes and its log). It
// also replaces an old file.
func createPromises(dir string, r record) (*promises, error) {
	path := filepath.Join(dir, promisesFile)
	temporary := path + ".new"
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("mailbox: cannot make %s: %w", temporary, err)
	}
	p := &promises{file: f, path: path, record: r}
	err = errors.Join(f.Truncate(promisesBytes), p.writeEnd(), p.change(func(*record) {}))
	if err == nil {
		err = durable.Rename(temporary, path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mailbox: cannot make %s: %w", path, err), f.Close())
	}
	return p, nil
}

func newDisk() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // rand.Read never fails
	return hex.EncodeToString(b)
}

// newest reads two slots with copies of a body, and returns the body of the valid slot with the higher sequence number.
func newest(a, b []byte) (body []byte, seq uint64, ok bool) {
	for _, slot := range [][]byte{a, b} {
		if one, n, valid := readSlot(slot); valid && (!ok || n > seq) {
			body, seq, ok = one, n, true
		}
	}
	return body, seq, ok
}

func readSlot(slot []byte) (body []byte, seq uint64, ok bool) {
	seq, length := binary.BigEndian.Uint64(slot), binary.BigEndian.Uint32(slot[8:])
	if seq == 0 || int(length) > len(slot)-slotHead {
		return nil, 0, false
	}
	body = slot[slotHead : slotHead+int(length)]
	digest := slotSum(slot[:12], body)
	return body, seq, bytes.Equal(digest[:], slot[12:slotHead])
}

func slotSum(head, body []byte) [sha256.Size]byte {
	return sha256.Sum256(append(bytes.Clone(head), body...))
}

// writeSlot writes a body into one of the two slots of its kind: into the slot with the older content.
func (p *promises) writeSlot(kind int, at, size int64, body []byte) error {
	p.seqs[kind]++
	slot := binary.BigEndian.AppendUint64(make([]byte, 0, slotHead+len(body)), p.seqs[kind])
	slot = binary.BigEndian.AppendUint32(slot, uint32(len(body)))
	digest := slotSum(slot, body)
	slot = append(append(slot, digest[:]...), body...)
	_, err := p.file.WriteAt(slot, at+size*int64(p.seqs[kind]%2))
	return err
}

func (p *promises) writeRecord() error {
	body, err := json.Marshal(p.record)
	if err != nil {
		return err
	}
	if len(body) > maxPromiseBody {
		return fmt.Errorf("mailbox: the record of acknowledged entries has %d bytes, above %d", len(body), maxPromiseBody)
	}
	p.dirty = false
	return p.writeSlot(0, 0, recordSlot, body)
}

func (p *promises) writeEnd() error {
	body := binary.BigEndian.AppendUint64(nil, p.end.index)
	p.dirty = true
	return p.writeSlot(1, endsAt, endSlot, binary.BigEndian.AppendUint64(body, p.end.term))
}

// reached stores the promise that this replica's log goes up to the given entry. The entry must already be on the disk.
func (p *promises) reached(index, term uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end.index, p.end.term = index, term
	return p.writeEnd()
}

// settled returns the last entry of this replica's log that is known to be committed.
func (p *promises) settled() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.record.Settled
}

func (p *promises) promised() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.end.index
}

// mend compares the record and the end of the log in the file with what was last written. If one of them differs, mend
// writes the slots again and returns true.
func (p *promises) mend() (mended bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]byte, promisesBytes)
	if _, err := p.file.ReadAt(all, 0); err == nil && p.written(0, all[:endsAt], recordSlot) && p.written(1, all[endsAt:], endSlot) {
		return false, nil
	}
	for range 2 {
		err = errors.Join(err, p.writeEnd(), p.writeRecord())
	}
	return true, errors.Join(err, p.file.Sync())
}

// written reports whether the two slots of a kind of promise have the last two versions that this replica wrote. Each
// write goes to the slot with the older content.
func (p *promises) written(kind int, slots []byte, size int) bool {
	for i := range min(2, p.seqs[kind]) {
		seq := p.seqs[kind] - i
		if _, has, ok := readSlot(slots[int(seq%2)*size:][:size]); !ok || has != seq {
			return false
		}
	}
	return true
}

// lowered records on the disk that the log ends at a lower index. It must be called before the end of the log is cut
// off.
func (p *promises) lowered(index, term uint64) error {
	if err := p.reached(index, term); err != nil {
		return err
	}
	return p.file.Sync()
}

// change changes the record. When it returns without an error, the changed record is on the disk.
func (p *promises) change(f func(*record)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.record)
	if err := p.writeRecord(); err != nil {
		return err
	}
	return p.file.Sync()
}

// learn changes fields of the record that need not be durable at once: they are written to the disk with a later
// change.
func (p *promises) learn(f func(*record) (changed bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f(&p.record) {
		p.dirty = true
	}
}

// flush writes the values that were stored with the method learn, and syncs the file. It holds no lock during the sync,
// so the log can be written meanwhile.
func (p *promises) flush() error {
	p.mu.Lock()
	if !p.dirty {
		p.mu.Unlock()
		return nil
	}
	err := p.writeRecord()
	p.mu.Unlock()
	return errors.Join(err, p.file.Sync())
}

func (p *promises) now() record {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.record
	r.Known, r.Reigns = slices.Clone(r.Known), slices.Clone(r.Reigns)
	return r
}

// seals reports whether the entry at an index must have a seal.
func (p *promises) seals(index uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return index >= p.record.Sealed && index <= p.end.index
}

func (p *promises) close() error {
	return errors.Join(p.flush(), p.file.Close())
}

// begin is called when a replica votes. At its first vote, the replica's standing changes from new to whole. A new
// replica votes only for candidates of a group that is beginning, with empty logs. If the first leader is lost early,
// the same replicas must vote again, and their logs are no longer empty. They can do this, because they have the
// standing "whole".
func (r *record) begin() {
	if r.Standing == standingNew {
		r.Standing = standingWhole
	}
}

// of returns the position of a replica's disk in the list r.Known. It returns -1 if the list does not have the disk.
func (r *record) of(id string) int {
	return slices.IndexFunc(r.Known, func(d diskOf) bool { return d.ID == id })
}

// known returns what the record says about a replica's disk.
func (r *record) known(id string) (d diskOf, has bool) {
	if i := r.of(id); i >= 0 {
		return r.Known[i], true
	}
	return d, false
}

// learn adds what another replica says about a disk, and reports whether anything was new. It ignores what is said
// about an earlier disk of the same replica. The floor of a disk is the highest index that is known to be committed on
// it. If the disk is the same, learn never lowers its floor.
func (r *record) learn(d diskOf) bool {
	mine, has := r.known(d.ID)
	if has && d.Version < mine.Version {
		return false
	}
	if d.Disk == mine.Disk && d.Version == mine.Version {
		d.Floor = max(d.Floor, mine.Floor)
	}
	return r.note(d)
}

func (r *record) note(d diskOf) bool {
	i := r.of(d.ID)
	if i < 0 {
		r.Known = append(r.Known, d)
		return true
	}
	changed := r.Known[i] != d
	r.Known[i] = d
	return changed
}
