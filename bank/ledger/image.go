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

// magic begins every image; it changes with the format.
const magic = "candor-ledger-2\n"

// Image is a ledger at one moment. Later changes of the ledger leave it
// untouched, and it may be used by other goroutines.
type Image struct {
	now      messages.Time
	journal  journal
	accounts [][]account // in the order of opening, copied
	holds    []hold      // copied
	dues     dues        // copied
	totals   Totals
}

// Capture takes an image. It copies the pending holds, and of the accounts
// those that changed since the last one.
func (l *Ledger) Capture() *Image {
	l.refresh()
	img := &Image{now: l.now, journal: l.journal.prefix(), accounts: append([][]account(nil), l.copies...), totals: l.Totals()}
	img.holds = make([]hold, 0, len(l.holds))
	for _, h := range l.holds {
		img.holds = append(img.holds, *h)
	}
	img.dues = append(dues(nil), l.dues...)
	return img
}

// Records returns how many records the image's journal has. Two images of one
// ledger with as many records differ at most in their time.
func (img *Image) Records() uint64 { return img.journal.count }

// Head returns the hash of the image's journal.
func (img *Image) Head() Head { return img.journal.chain.head }

// Tail returns the records since the last full segment.
func (img *Image) Tail() *Segment {
	tail := img.journal.tail
	return &tail
}

// Now returns the ledger's time.
func (img *Image) Now() messages.Time { return img.now }

// each calls f with every account, in the order of opening.
func (img *Image) each(f func(*account) bool) {
	for _, page := range img.accounts {
		for i := range page {
			if !f(&page[i]) {
				return
			}
		}
	}
}

// Hash returns the digest of the ledger's image; see [Image.Hash].
func (l *Ledger) Hash() [sha256.Size]byte { return l.Capture().Hash() }

// Hash returns the image's digest: equal for replicas that applied the same
// commands, wherever they keep their history. Its cost does not depend on the
// length of the history, for which its head stands.
func (img *Image) Hash() [sha256.Size]byte {
	h := sha256.New()
	var w writer
	w.opening(img)
	h.Write(w.b)      //nolint:errcheck // a hash takes everything
	img.writeState(h) //nolint:errcheck // a hash takes everything
	img.writeDues(h)  //nolint:errcheck // a hash takes everything
	return [sha256.Size]byte(h.Sum(nil))
}

// WriteTo writes the image, then its SHA-256. Where the store keeps segments
// through a loss of power, they are made to last and the image has only their
// sums; else it has every record.
func (img *Image) WriteTo(w io.Writer) (int64, error) {
	durable, err := img.journal.store.Sync()
	if err != nil {
		return 0, fmt.Errorf("the bank's history cannot be made durable: %w", err)
	}
	out := &counter{w: w}
	buffered := bufio.NewWriterSize(out, 1<<16)
	h := sha256.New()
	if err := img.body(io.MultiWriter(buffered, h), durable); err != nil {
		return out.n, err
	}
	if _, err := buffered.Write(h.Sum(nil)); err != nil {
		return out.n, err
	}
	err = buffered.Flush()
	return out.n, err
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// opening writes what stands for the history: the time, the number of records,
// and their hash.
func (w *writer) opening(img *Image) {
	w.b = append(w.b, magic...)
	w.int(int64(img.now))
	w.uint(img.journal.count)
	w.b = append(w.b, img.journal.chain.head[:]...)
}

// body writes the opening, the sums of the segments that are elsewhere, each
// other record behind its length, and the state.
func (img *Image) body(out io.Writer, durable bool) error {
	var w writer
	w.opening(img)
	from := uint64(1)
	elsewhere := img.journal.sealed
	if !durable {
		elsewhere = nil
	}
	w.uint(uint64(len(elsewhere)))
	for _, s := range elsewhere {
		sum := s.Sum()
		w.sum(&sum)
		from = sum.First + uint64(sum.Count)
	}
	if _, err := out.Write(w.b); err != nil {
		return err
	}
	err := img.journal.each(from, func(_ uint64, record []byte) error {
		w.b = binary.AppendUvarint(w.b[:0], uint64(len(record)))
		w.b = append(w.b, record...)
		_, err := out.Write(w.b)
		return err
	})
	if err != nil {
		return err
	}
	if err := img.writeState(out); err != nil {
		return err
	}
	return img.writeDues(out)
}

func (w *writer) sum(s *Sum) {
	w.uint(s.First)
	w.uint(uint64(s.Count))
	w.uint(uint64(s.Size))
	w.b = append(w.b, s.After[:]...)
	w.b = append(w.b, s.Digest[:]...)
}

// errImage is wrapped by every error of Restore that is not the reader's own.
var errImage = errors.New("ledger: the image is damaged")

// Restore replaces the ledger by an image. Where the image has every record,
// each is checked against the rules that made it, and all against the state
// written down; where segments are elsewhere, they are opened, and the state is
// taken from the image. On an error the ledger is as it was.
func (l *Ledger) Restore(r io.Reader) error {
	in := &source{in: bufio.NewReaderSize(r, 1<<16), h: sha256.New()}
	fresh := Open(l.journal.store)
	if err := fresh.readBody(in); err != nil {
		return err
	}
	var digest [sha256.Size]byte
	want := in.h.Sum(nil)
	if _, err := io.ReadFull(in.in, digest[:]); err != nil {
		return damaged("its digest", err)
	}
	if !bytes.Equal(digest[:], want) {
		return fmt.Errorf("%w: its digest does not match", errImage)
	}
	*l = *fresh
	return nil
}

func damaged(where string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it ends within %s", errImage, where)
	}
	return fmt.Errorf("ledger: reading %s: %w", where, err)
}

// source hashes exactly what is read through it, not what is read ahead.
type source struct {
	in *bufio.Reader
	h  hash.Hash
}

func (r *source) Read(b []byte) (int, error) {
	n, err := r.in.Read(b)
	r.h.Write(b[:n]) //nolint:errcheck // a hash never fails
	return n, err
}

func (r *source) ReadByte() (byte, error) {
	c, err := r.in.ReadByte()
	if err == nil {
		r.h.Write([]byte{c}) //nolint:errcheck // a hash never fails
	}
	return c, err
}

func (l *Ledger) readBody(r *source) error {
	first := make([]byte, len(magic))
	if _, err := io.ReadFull(r, first); err != nil {
		return damaged("its first line", err)
	}
	if string(first) != magic {
		return fmt.Errorf("%w: it does not begin with %q", errImage, magic)
	}
	now, err := binary.ReadVarint(r)
	if err != nil {
		return damaged("its time", err)
	}
	count, err := binary.ReadUvarint(r)
	if err != nil {
		return damaged("the number of records", err)
	}
	var head Head
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return damaged("the hash of the records", err)
	}
	replayed, err := l.readHistory(r, count)
	if err != nil {
		return err
	}
	if l.journal.chain.head != head {
		return fmt.Errorf("%w: its records do not come to the hash that stands for them", errImage)
	}
	if messages.Time(now) < l.now {
		return fmt.Errorf("%w: its time is before its last record", errImage)
	}
	l.now = messages.Time(now)
	state := l.readState
	if replayed {
		state = l.compareState
	}
	if err := state(r); err != nil {
		return err
	}
	return l.readDues(r)
}

// readHistory opens the segments that are elsewhere and reads the records that
// are here. It reports whether these were all, and so gave the state.
func (l *Ledger) readHistory(r *source, count uint64) (replayed bool, err error) {
	segments, err := binary.ReadUvarint(r)
	if err != nil {
		return false, damaged("the number of segments", err)
	}
	for range segments {
		if err := l.readSegment(r); err != nil {
			return false, err
		}
	}
	add := l.replay
	if segments > 0 {
		add = l.readd
	}
	var raw []byte
	for l.journal.count < count {
		number := l.journal.count + 1
		if raw, err = readText(r, raw, maxRecord); err != nil {
			return false, damaged(fmt.Sprintf("record %d of %d", number, count), err)
		}
		if err := add(raw); err != nil {
			return false, fmt.Errorf("%w: record %d: %v", errImage, number, err)
		}
	}
	if l.journal.count != count {
		return false, fmt.Errorf("%w: its segments have more records than there are", errImage)
	}
	return segments == 0, nil
}

// readSegment opens a segment that is elsewhere, behind those before.
func (l *Ledger) readSegment(r *source) error {
	sum, err := readSum(r)
	if err != nil {
		return damaged("the sum of a segment", err)
	}
	if sum.First != l.journal.count+1 || sum.Count <= 0 || sum.Size < sum.Count || sum.Size > maxSegment {
		return fmt.Errorf("%w: its segments do not follow one another", errImage)
	}
	s, err := l.journal.store.Open(sum)
	if err != nil {
		return fmt.Errorf("ledger: the bank's history: %w", err)
	}
	keys, err := s.Keys()
	if err != nil {
		return fmt.Errorf("ledger: the bank's history: %w", err)
	}
	for i, key := range keys {
		if key != 0 {
			l.known.enter(key, sum.First+uint64(i))
		}
	}
	l.journal.follow(s)
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

// readd adds a record to a history of which the state is given otherwise.
func (l *Ledger) readd(raw []byte) error {
	rec, ok := decodeRecord(raw)
	if !ok {
		return errRecord
	}
	if rec.at < l.now {
		return errTime
	}
	l.now = rec.at
	key := l.keyOf(&rec)
	number, err := l.journal.append(raw, key)
	if err == nil && key != 0 {
		l.known.enter(key, number)
	}
	return err
}

// readText reads a length and so many bytes, into space if they fit.
func readText(r *source, space []byte, most uint64) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, err
	}
	if n > most {
		return nil, fmt.Errorf("%d bytes, more than there can be", n)
	}
	if uint64(cap(space)) >= n {
		_, err = io.ReadFull(r, space[:n])
		return space[:n], err
	}
	// A length may be damaged: nothing is reserved for bytes that do not come.
	var grown bytes.Buffer
	if _, err := io.CopyN(&grown, r, int64(n)); err != nil {
		return nil, err
	}
	return grown.Bytes(), nil
}

// maxRecord bounds a record in bytes, maxSegment those of a segment.
const (
	maxRecord  = 1 << 20
	maxSegment = 1 << 31
)
