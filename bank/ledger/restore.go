package ledger

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/candor-grid/candor/messages"
)

// errImage is in the chain of every error of Restore, except errors of the reader.
var errImage = errors.New("ledger: the image is damaged")

// RestoreWith returns an error that wraps ErrOther if the image does not continue the ledger in Checking.Known.
var ErrOther = errors.New("the image does not match the records that this replica has checked")

// Checking says how RestoreWith checks an image. The zero value checks every record, and has no Settler.
type Checking struct {
	// RestoreWith computes the ledger's state again from the records. Settles returns the Settler, whose state is
	// computed together with the ledger's. It is nil if there is no Settler.
	Settles func(*Ledger) Settler
	// Known is a ledger with the first records of the image, which were checked before. If Known is set, only the later
	// records are computed again from their requests. If it is nil, all records are. RestoreWith takes Known over and
	// changes it.
	Known *Ledger
	// Each is called before each record is derived, with the number of the record and the number of all records in the
	// image. It may be nil. An error of Each ends the restore.
	Each func(number, count uint64) error
}

// Restore replaces the ledger by an image. If the image has every record, Restore replays them and compares the result
// with the image's state. Otherwise it opens the segments in the store and takes the state from the image. After an
// error the ledger has not changed.
func (l *Ledger) Restore(r io.Reader) error {
	_, err := l.RestoreWith(r, Checking{})
	return err
}

// RestoreWith does the same as Restore, and checks more. The ledger must know its root of trust: the key from which all
// signatures can be checked. RestoreWith also carries out the signed requests of all records that were not checked
// before. The result must be the state in the image. The report counts the records that were computed in this way.
func (l *Ledger) RestoreWith(r io.Reader, check Checking) (ProofReport, error) {
	in := &source{in: bufio.NewReaderSize(r, 1<<16), h: sha256.New()}
	fresh := check.Known
	if fresh == nil {
		fresh = Open(l.records.journal.store)
	}
	fresh.requests.trust.root = l.requests.trust.root
	load := loader{in: in, ledger: fresh, records: fresh.records, accounts: fresh.accounts, checking: check, known: fresh.records.journal.prefix()}
	if err := load.body(); err != nil {
		return load.report, err
	}
	var digest [sha256.Size]byte
	want := in.h.Sum(nil)
	if _, err := io.ReadFull(in.in, digest[:]); err != nil {
		return load.report, damaged("its digest", err)
	}
	if !bytes.Equal(digest[:], want) {
		return load.report, fmt.Errorf("%w: its digest does not match", errImage)
	}
	*l = *fresh
	return load.report, nil
}

func damaged(where string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it ends within %s", errImage, where)
	}
	return fmt.Errorf("ledger: reading %s: %w", where, err)
}

// source hashes the bytes that were read from it. Bytes that its buffer has read ahead do not count.
type source struct {
	in *bufio.Reader
	h  hash.Hash
}

func (r *source) Read(b []byte) (int, error) {
	n, err := r.in.Read(b)
	r.h.Write(b[:n]) //nolint:errcheck // writing to a hash cannot fail
	return n, err
}

func (r *source) ReadByte() (byte, error) {
	c, err := r.in.ReadByte()
	if err == nil {
		r.h.Write([]byte{c}) //nolint:errcheck // writing to a hash cannot fail
	}
	return c, err
}

// loader reads an image into an empty ledger, or into a ledger that already has the first records of the image.
type loader struct {
	in       *source
	ledger   *Ledger
	records  *records  // part of ledger
	accounts *accounts // part of ledger
	checking Checking
	known    journal // the journal of checking.Known, or an empty one
	now      messages.Time
	count    uint64 // number of records in the image
	report   ProofReport
}

func (d *loader) body() error {
	first := make([]byte, len(magic))
	if _, err := io.ReadFull(d.in, first); err != nil {
		return damaged("its first line", err)
	}
	if err := messages.CheckFormat("the ledger's image", string(first), magic); err != nil {
		return err
	}
	if string(first) != magic {
		return fmt.Errorf("%w: it does not begin with %q", errImage, magic)
	}
	now, err := binary.ReadVarint(d.in)
	if err != nil {
		return damaged("its time", err)
	}
	count, err := binary.ReadUvarint(d.in)
	if err != nil {
		return damaged("the number of records", err)
	}
	var head Head
	if _, err := io.ReadFull(d.in, head[:]); err != nil {
		return damaged("the hash of the records", err)
	}
	d.now, d.count = messages.Time(now), count
	if d.known.count > count || d.records.now > d.now {
		return fmt.Errorf("%w: the image is older", ErrOther)
	}
	history := d.history
	if d.derives() {
		history = d.derive
	}
	replayed, err := history(count)
	if err != nil {
		return err
	}
	if d.records.journal.chain.head != head {
		return fmt.Errorf("%w: the hash of its records differs from its head", errImage)
	}
	if messages.Time(now) < d.records.now {
		return fmt.Errorf("%w: its time is before its last record", errImage)
	}
	d.records.now = messages.Time(now)
	state := d.state
	if replayed {
		state = d.compareState
	}
	if err := state(); err != nil {
		return err
	}
	for _, a := range d.accounts.order {
		d.ledger.lots.schedule(a, d.now)
	}
	return nil
}

// derives reports whether the records must be derived from signed requests.
func (d *loader) derives() bool { return d.ledger.requests.trust.root != nil }

// derive reads all records, also the records in segments. A part of the records may have been checked before. For the
// other records, derive carries out the signed requests again.
func (d *loader) derive(count uint64) (bool, error) {
	segments, err := binary.ReadUvarint(d.in)
	if err != nil {
		return false, damaged("the number of segments", err)
	}
	again := replayInto(d.ledger)
	again.derived(d.ledger.requests.trust.root, d.checking.Settles)
	defer func() { d.report = again.report }()
	kept := d.records.journal.store
	files := &retraced{Store: kept}
	if segments > 0 {
		d.records.journal.store = files
	}
	number := uint64(1) // number of the next record
	for place := range segments {
		if number, err = d.deriveSegment(int(place), number, files, again); err != nil {
			return false, err
		}
	}
	var raw []byte
	for ; number <= count; number++ {
		if raw, err = readText(d.in, raw, maxRecord); err != nil {
			return false, damaged(fmt.Sprintf("record %d of %d", number, count), err)
		}
		if err := d.deriveRecord(number, raw, again); err != nil {
			return false, fmt.Errorf("%w: %w", errImage, err)
		}
	}
	if d.now > d.records.now {
		d.ledger.expiry.advance(d.now)
	}
	if err := again.end(); err != nil {
		return false, fmt.Errorf("%w: %v", errImage, err)
	}
	if d.records.journal.count != count || len(files.sums) > 0 {
		return false, fmt.Errorf("%w: its segments do not have the records that it lists", errImage)
	}
	d.records.journal.store = kept
	return true, nil
}

// deriveRecord adds a record to a replay. If the loader knows a record with this number from an earlier check,
// deriveRecord adds nothing. It only compares the new bytes with the known bytes.
func (d *loader) deriveRecord(number uint64, raw []byte, again *replay) error {
	if number <= d.known.count {
		is, err := d.known.at(number)
		if err == nil && !bytes.Equal(is, raw) {
			err = fmt.Errorf("%w: record %d differs", ErrOther, number)
		}
		return err
	}
	if d.checking.Each != nil {
		if err := d.checking.Each(number, d.count); err != nil {
			return err
		}
	}
	return again.add(raw)
}

// deriveSegment derives the records of a stored segment again from the requests that caused them, unless they were
// checked before. The argument `place` is the segment's position in the image. The argument `number` is the number of
// the segment's first record. The result `next` is the number of the first record after the segment.
func (d *loader) deriveSegment(place int, number uint64, files *retraced, again *replay) (next uint64, err error) {
	sum, err := readSum(d.in)
	if err != nil {
		return 0, damaged("the sum of a segment", err)
	}
	if sum.First != number || sum.Count <= 0 || sum.Size < sum.Count || sum.Size > maxSegment {
		return 0, fmt.Errorf("%w: its segments do not follow one another", errImage)
	}
	next = sum.First + uint64(sum.Count)
	if place < len(d.known.sealed) {
		if d.known.sealed[place].Sum() != sum {
			return 0, fmt.Errorf("%w: records %d to %d differ", ErrOther, sum.First, next-1)
		}
		return next, nil
	}
	s, err := files.Open(sum)
	if err != nil {
		return 0, fmt.Errorf("ledger: the bank's history: %w", err)
	}
	whole, err := s.Segment()
	if err != nil {
		return 0, fmt.Errorf("ledger: the bank's history: %w", err)
	}
	files.sums = append(files.sums, sum)
	return next, whole.Each(sum.First, func(number uint64, record []byte) error {
		if err := d.deriveRecord(number, record, again); err != nil {
			return fmt.Errorf("ledger: the bank's history: %w", err)
		}
		return nil
	})
}

// A replay computes stored segments again from their records. retraced is its store. It already has these segments.
// When the replay seals a segment, retraced stores nothing, but checks that the segment equals the stored one.
type retraced struct {
	Store
	sums []Sum // sums of the segments that were read, and that the replay has not sealed yet
}

func (r *retraced) Seal(s *Segment) (Sealed, error) {
	sum, err := SumOf(s.Table())
	if err == nil && (len(r.sums) == 0 || r.sums[0] != sum) {
		err = fmt.Errorf("records %d to %d differ from the same records in the file: the file was changed, or this bank writes files of another size", sum.First, sum.First+uint64(sum.Count)-1)
	}
	if err != nil {
		return nil, err
	}
	r.sums = r.sums[1:]
	return r.Open(sum)
}

// history opens the segments in the store, and reads the records that are not in segments. The result `replayed` is
// true if the image had all records. The state was then made from these records.
func (d *loader) history(count uint64) (replayed bool, err error) {
	segments, err := binary.ReadUvarint(d.in)
	if err != nil {
		return false, damaged("the number of segments", err)
	}
	for range segments {
		if err := d.segment(); err != nil {
			return false, err
		}
	}
	add, end := d.records.enter, func() error { return nil }
	if segments == 0 {
		again := replayInto(d.ledger)
		add, end = again.add, again.end
	}
	var raw []byte
	for number := d.records.journal.count + 1; number <= count; number++ {
		if raw, err = readText(d.in, raw, maxRecord); err != nil {
			return false, damaged(fmt.Sprintf("record %d of %d", number, count), err)
		}
		if err := add(raw); err != nil {
			return false, fmt.Errorf("%w: %v", errImage, err)
		}
	}
	if err := end(); err != nil {
		return false, fmt.Errorf("%w: %v", errImage, err)
	}
	if d.records.journal.count != count {
		return false, fmt.Errorf("%w: its segments have more records than the image says", errImage)
	}
	return segments == 0, nil
}

func (d *loader) segment() error {
	sum, err := readSum(d.in)
	if err != nil {
		return damaged("the sum of a segment", err)
	}
	if sum.First != d.records.journal.count+1 || sum.Count <= 0 || sum.Size < sum.Count || sum.Size > maxSegment {
		return fmt.Errorf("%w: its segments do not follow one another", errImage)
	}
	s, err := d.records.journal.store.Open(sum)
	if err != nil {
		return fmt.Errorf("ledger: the bank's history: %w", err)
	}
	if err := d.records.follow(s, &sum); err != nil {
		return fmt.Errorf("ledger: the bank's history: %w", err)
	}
	return nil
}

func readSum(r *source) (s Sum, err error) {
	var numbers [3]uint64
	for i := range numbers {
		if numbers[i], err = binary.ReadUvarint(r); err != nil {
			return s, err
		}
	}
	s.First, s.Count, s.Size = numbers[0], int(numbers[1]), int(numbers[2])
	for _, part := range [][]byte{s.After[:], s.Digest[:]} {
		if _, err := io.ReadFull(r, part); err != nil {
			return s, err
		}
	}
	return s, nil
}

// readText reads a text that comes after its length. If the text fits into the slice `space`, it is stored there, and
// no memory is allocated.
func readText(r *source, space []byte, most uint64) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, err
	}
	if n > most {
		return nil, fmt.Errorf("%d bytes, more than the maximum", n)
	}
	if uint64(cap(space)) >= n {
		_, err = io.ReadFull(r, space[:n])
		return space[:n], err
	}
	// A damaged length can be very large. So the buffer is not allocated for the whole length: it grows with the bytes
	// that were read.
	var grown bytes.Buffer
	if _, err := io.CopyN(&grown, r, int64(n)); err != nil {
		return nil, err
	}
	return grown.Bytes(), nil
}

// maxRecord is the maximum size of a record in bytes. maxSegment is the maximum size of a segment.
const (
	maxRecord  = 1 << 20
	maxSegment = 1 << 31
)
