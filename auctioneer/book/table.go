package book

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/wire"
)

// A site can have a million waiting jobs. While an image captures all of them, commands may change the book. To keep
// the capture cheap, the table stores each job that has not begun as bytes, and the image uses the same memory as the
// table. A command that changes such a job changes a copy.

const (
	chunkJobs  = 256
	warmJobs   = 256     // number of unpacked jobs that are kept in memory
	mostPacked = 4 << 10 // in bytes: to unpack a larger description for each reader would take too long
)

// table holds the jobs by number. Several readers may use it at the same time.
type table struct {
	chunks map[messages.JobID]*chunk // the key is a job number divided by chunkJobs
	count  int
	era    atomic.Uint64 // number of captured images
	warm   [warmJobs]atomic.Pointer[Job]
}

// chunk holds a block of jobs with consecutive numbers; the length of the block is chunkJobs. The era of the table is
// the number of images so far. If the era of a chunk is older, an image may share the chunk.
type chunk struct {
	era   uint64
	count int
	// owned has one bit for each job. The bit is 1 if no image of the book uses the job, so that the job may be changed
	// in place.
	owned [chunkJobs / 64]uint64
	slots [chunkJobs]slot
}

// slot holds a job. The job is either a Job value, or bytes in the encoding of an image. An empty slot holds no job.
type slot struct {
	job    *Job
	packed string // the job in the encoding of an image; see pack
}

// look returns the slot of a job, or nil if there is no such job.
func (t *table) look(id messages.JobID) *slot {
	c := t.chunks[id/chunkJobs]
	if c == nil || c.slots[id%chunkJobs] == (slot{}) {
		return nil
	}
	return &c.slots[id%chunkJobs]
}

// get returns a job, which the caller must not change, or nil if there is none.
func (t *table) get(id messages.JobID) *Job {
	s := t.look(id)
	if s == nil || s.job != nil {
		return s.live()
	}
	warm := &t.warm[id%warmJobs]
	if j := warm.Load(); j != nil && j.ID == id {
		return j
	}
	j := unpack(s.packed)
	warm.Store(j)
	return j
}

// Spare is memory for reading one job after another. Each job that is read overwrites the previous one. The zero value
// of Spare is ready to use.
type Spare struct {
	job     Job
	record  []byte
	decoder wire.Decoder
}

// glance returns a job like get, but it decodes a packed job into `spare`. The returned job is valid only until the
// next call with the same `spare`.
func (t *table) glance(id messages.JobID, spare *Spare) *Job {
	s := t.look(id)
	if s == nil || s.job != nil {
		return s.live()
	}
	spare.record = appendRecord(spare.record[:0], s.packed)
	if err := spare.decoder.Decode(spare.record, &spare.job); err != nil {
		panic(err) // cannot happen: pack wrote these bytes
	}
	if spare.job.Contract != nil || spare.job.Spec.Valuation != nil { // the caller may keep pointers to these fields, so they must not be in memory that is reused
		return t.get(id)
	}
	return &spare.job
}

// live returns the job in a slot of the table. It returns nil if the slot has no job, or has it only in encoded form.
func (s *slot) live() *Job {
	if s == nil {
		return nil
	}
	return s.job
}

// own returns a job that the caller may change, or nil if there is no such job. If an image also uses the job, own
// copies the job first, and the table then has only the copy. So a pointer to the job from an earlier command may be a
// pointer to the old job: do not use it.
func (t *table) own(id messages.JobID) *Job {
	if t.look(id) == nil {
		return nil
	}
	c, at := t.mine(id), id%chunkJobs
	s, word, bit := &c.slots[at], &c.owned[at/64], uint64(1)<<(at%64)
	switch {
	case s.job == nil:
		s.job, s.packed = t.get(id), ""
		t.warm[id%warmJobs].Store(nil)
	case *word&bit == 0:
		s.job = s.job.copy()
	}
	*word |= bit
	return s.job
}

// mine returns the chunk that contains a job number, for changes. If a stored image of the book shares the chunk, mine
// returns a copy.
func (t *table) mine(id messages.JobID) *chunk {
	k := id / chunkJobs
	c, era := t.chunks[k], t.era.Load()
	switch {
	case c == nil:
		c = &chunk{era: era}
	case c.era != era:
		shared := c
		c = &chunk{era: era, count: shared.count, slots: shared.slots}
	}
	t.chunks[k] = c
	return c
}

// put adds a job, packed if possible, and returns the packed bytes, or "" if it is not packed.
func (t *table) put(j *Job) (packed string) {
	packed = j.pack()
	t.enter(j, packed)
	return packed
}

func (t *table) enter(j *Job, packed string) {
	c, at := t.mine(j.ID), j.ID%chunkJobs
	if c.slots[at] == (slot{}) {
		c.count++
		t.count++
	}
	if packed != "" {
		c.slots[at] = slot{packed: packed}
		t.warm[j.ID%warmJobs].Store(j)
		return
	}
	c.slots[at] = slot{job: j}
	c.owned[at/64] |= 1 << (at % 64)
}

func (t *table) remove(id messages.JobID) {
	if t.look(id) == nil {
		return
	}
	c := t.mine(id)
	c.slots[id%chunkJobs] = slot{}
	t.warm[id%warmJobs].Store(nil)
	t.count--
	if c.count--; c.count == 0 {
		delete(t.chunks, id/chunkJobs)
	}
}

// all calls the function `yield` for each job, in no fixed order. It leaves out packed jobs, unless `packed` is true.
func (t *table) all(packed bool, yield func(*Job) bool) {
	for _, c := range t.chunks {
		for i := range c.slots {
			j := c.slots[i].job
			if j == nil && packed && c.slots[i].packed != "" {
				j = unpack(c.slots[i].packed)
			}
			if j != nil && !yield(j) {
				return
			}
		}
	}
}

// capture returns the present chunks of jobs. These chunks do not change any more: a later change copies a chunk first.
func (t *table) capture() []*chunk {
	t.era.Add(1)
	out := make([]*chunk, 0, len(t.chunks))
	for _, k := range slices.Sorted(maps.Keys(t.chunks)) {
		out = append(out, t.chunks[k])
	}
	return out
}

// plain is the encoding of an empty job with one task. The encodings of most waiting jobs end with the same bytes as
// plain. The table does not store these bytes.
var plain = sync.OnceValue(func() []byte {
	data, err := wire.Marshal(&Job{Stages: []Stage{{Total: 1}}}, wire.Msgpack)
	if err != nil {
		panic(err)
	}
	return data
})

// A packed job begins with these bytes, and its shortened record follows. The bytes say how to make the whole record
// from the shortened one.
const (
	alikeAt    = iota // number of last bytes that were removed because plain ends with the same bytes
	ownerAt           // position of the account and the key
	cutAt             // two bytes: the position in the hold's identifier where account and key were removed; 0 means that nothing was removed
	recordFrom = cutAt + 2
)

// pack returns the bytes of a job that waits and has never begun. It returns "" for all other jobs, and also if the job
// is too large or too unusual for the packed form.
func (j *Job) pack() string {
	if j.State != job.Waiting || j.Started != 0 || j.Visit != nil || j.Order != nil || j.Paired || j.Doubts != nil || slices.ContainsFunc(j.Stages, Stage.begun) {
		return ""
	}
	data, err := wire.Marshal(j, wire.Msgpack)
	if err != nil || len(data) > mostPacked {
		return ""
	}
	var head [recordFrom]byte
	alike, plain := 0, plain()
	for alike < min(len(data), len(plain), math.MaxUint8) && data[len(data)-1-alike] == plain[len(plain)-1-alike] {
		alike++
	}
	head[alikeAt], data = byte(alike), data[:len(data)-alike]
	owner, text := []byte(owned(j.Account, j.Key)), []byte(j.Account+"/"+j.Key)
	before, after, found := bytes.Cut(data, owner)
	if at := bytes.Index(after, text); found && at >= 0 && max(len(before), len(text)) <= math.MaxUint8 {
		at += len(before) + len(owner)
		head[ownerAt] = byte(len(before))
		binary.BigEndian.PutUint16(head[cutAt:], uint16(at))
		data = slices.Delete(data, at, at+len(text))
	}
	return string(append(head[:], data...))
}

// appendRecord appends the record of a packed job in the encoding of an image. It puts back the parts that packing
// removed.
func appendRecord(out []byte, packed string) []byte {
	record, cut := packed[recordFrom:], int(packed[cutAt])<<8|int(packed[cutAt+1])
	if cut > 0 {
		account, rest := shortText(record[packed[ownerAt]:])
		key, _ := shortText(rest)
		out = append(append(append(append(out, record[:cut]...), account...), '/'), key...)
	}
	out = append(out, record[cut:]...)
	end := plain()
	return append(out, end[len(end)-int(packed[alikeAt]):]...)
}

// owned returns the encoding of an account and a key of at most 255 bytes each.
func owned(account messages.Name, key string) string {
	return string(appendText(appendText(make([]byte, 0, 128), account), key))
}

func appendText(out []byte, text string) []byte {
	switch n := len(text); {
	case n < 32:
		out = append(out, msgpcode.FixedStrLow|byte(n))
	case n < 256:
		out = append(out, msgpcode.Str8, byte(n))
	default:
		out = binary.BigEndian.AppendUint32(append(out, msgpcode.Str32), uint32(n))
	}
	return append(out, text...)
}

func shortText(record string) (text, rest string) {
	n, from := int(record[0]&^msgpcode.FixedStrLow), 1
	if record[0] == msgpcode.Str8 {
		n, from = int(record[1]), 2
	}
	return record[from : from+n], record[from+n:]
}

var scratch = sync.Pool{New: func() any { return new([]byte) }}

func unpack(packed string) *Job {
	j, buffer := new(Job), scratch.Get().(*[]byte)
	*buffer = appendRecord((*buffer)[:0], packed)
	if err := wire.Unmarshal(*buffer, wire.Msgpack, j); err != nil {
		panic(err) // cannot happen: pack wrote these bytes
	}
	scratch.Put(buffer)
	return j
}

// keyOf returns the account and the key as the index has them. The result shares memory with the packed job.
func keyOf(packed string, account messages.Name, key string) string {
	whole := owned(account, key)
	if at := strings.Index(packed, whole); at >= 0 {
		return packed[at : at+len(whole)]
	}
	return whole
}
