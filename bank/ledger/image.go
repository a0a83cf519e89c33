package ledger

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/candor-grid/candor/messages"
)

// magic begins every image; it changes with the format.
const magic = "candor-ledger-1\n"

// Image is a ledger at one moment. Later changes of the ledger leave it
// untouched, and it may be used by other goroutines.
type Image struct {
	now      messages.Time
	journal  journal
	accounts []accountImage // in the order of opening
	totals   Totals
}

// accountImage is what an account came to, as a check on the journal.
type accountImage struct {
	name messages.Name
	standing
	granted, spent messages.Credits
}

// Capture takes an image. It copies a few words for each account and each page
// of the journal.
func (l *Ledger) Capture() *Image {
	img := &Image{now: l.now, journal: l.journal.prefix(), totals: l.Totals()}
	img.accounts = make([]accountImage, len(l.order))
	for i, a := range l.order {
		img.accounts[i] = accountImage{name: a.name, standing: a.standing, granted: a.granted, spent: a.spent}
	}
	return img
}

// Records returns how many records the image's journal has. Two images of one
// ledger with as many records differ at most in their time.
func (img *Image) Records() uint64 { return img.journal.count }

// Hash returns the digest of the ledger's image; see [Image.Hash].
func (l *Ledger) Hash() [sha256.Size]byte { return l.Capture().Hash() }

// Hash returns the image's digest: equal for replicas that applied the same
// commands. It costs as much as writing the image.
func (img *Image) Hash() [sha256.Size]byte {
	h := sha256.New()
	img.body(h) //nolint:errcheck // a hash takes everything
	return [sha256.Size]byte(h.Sum(nil))
}

// WriteTo writes the image, then its SHA-256.
func (img *Image) WriteTo(w io.Writer) (int64, error) {
	out := &counter{w: w}
	buffered := bufio.NewWriterSize(out, 1<<16)
	h := sha256.New()
	if err := img.body(io.MultiWriter(buffered, h)); err != nil {
		return out.n, err
	}
	if _, err := buffered.Write(h.Sum(nil)); err != nil {
		return out.n, err
	}
	err := buffered.Flush()
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

// body writes the time, each record behind its length, and each account.
func (img *Image) body(out io.Writer) error {
	var w writer
	w.b = append(w.b, magic...)
	w.int(int64(img.now))
	w.uint(img.journal.count)
	if _, err := out.Write(w.b); err != nil {
		return err
	}
	err := img.journal.each(func(_ uint64, record []byte) error {
		w.b = binary.AppendUvarint(w.b[:0], uint64(len(record)))
		w.b = append(w.b, record...)
		_, err := out.Write(w.b)
		return err
	})
	if err != nil {
		return err
	}
	w.b = w.b[:0]
	w.uint(uint64(len(img.accounts)))
	for i := range img.accounts {
		w.accountImage(&img.accounts[i])
	}
	_, err = out.Write(w.b)
	return err
}

func (w *writer) accountImage(a *accountImage) {
	w.text(a.name)
	w.standing(a.standing)
	w.int(int64(a.granted))
	w.int(int64(a.spent))
}

// errImage is wrapped by every error of Restore that is not the reader's own.
var errImage = errors.New("ledger: the image is damaged")

// Restore replaces the ledger by an image. Every record is checked against
// the rules that made it and against the standings written down; on an error
// the ledger is as it was.
func (l *Ledger) Restore(r io.Reader) error {
	h := sha256.New()
	in := bufio.NewReaderSize(r, 1<<16)
	fresh := New()
	if err := fresh.readBody(&hashing{in, h}); err != nil {
		return err
	}
	var digest [sha256.Size]byte
	if _, err := io.ReadFull(in, digest[:]); err != nil {
		return damaged("its digest", err)
	}
	if !bytes.Equal(digest[:], h.Sum(nil)) {
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

// hashing hashes exactly what is read through it, not what is read ahead.
type hashing struct {
	in *bufio.Reader
	h  io.Writer
}

func (r *hashing) Read(b []byte) (int, error) {
	n, err := r.in.Read(b)
	r.h.Write(b[:n]) //nolint:errcheck // a hash never fails
	return n, err
}

func (r *hashing) ReadByte() (byte, error) {
	c, err := r.in.ReadByte()
	if err == nil {
		r.h.Write([]byte{c}) //nolint:errcheck // a hash never fails
	}
	return c, err
}

func (l *Ledger) readBody(r *hashing) error {
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(r, head); err != nil {
		return damaged("its first line", err)
	}
	if string(head) != magic {
		return fmt.Errorf("%w: it does not begin with %q", errImage, magic)
	}
	now, err := binary.ReadVarint(r)
	if err != nil {
		return damaged("its time", err)
	}
	if err := l.readRecords(r); err != nil {
		return err
	}
	if messages.Time(now) < l.now {
		return fmt.Errorf("%w: its time is before its last record", errImage)
	}
	l.now = messages.Time(now)
	return l.readAccounts(r)
}

func (l *Ledger) readRecords(r *hashing) error {
	count, err := binary.ReadUvarint(r)
	if err != nil {
		return damaged("the number of records", err)
	}
	var raw []byte
	for number := uint64(1); number <= count; number++ {
		if raw, err = readText(r, raw); err != nil {
			return damaged(fmt.Sprintf("record %d of %d", number, count), err)
		}
		if err := l.replay(raw); err != nil {
			return fmt.Errorf("%w: record %d: %v", errImage, number, err)
		}
	}
	return nil
}

// readText reads a length and so many bytes, into space if they fit.
func readText(r *hashing, space []byte) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, err
	}
	if n > pageSize {
		return nil, fmt.Errorf("%d bytes, more than a record can have", n)
	}
	if uint64(cap(space)) < n {
		space = make([]byte, n)
	}
	_, err = io.ReadFull(r, space[:n])
	return space[:n], err
}

// readAccounts compares what the accounts came to with what is written down.
func (l *Ledger) readAccounts(r *hashing) error {
	var w writer
	w.uint(uint64(len(l.order)))
	for _, a := range l.Capture().accounts {
		w.accountImage(&a)
	}
	written := make([]byte, len(w.b))
	if _, err := io.ReadFull(r, written); err != nil {
		return damaged("its accounts", err)
	}
	if !bytes.Equal(written, w.b) {
		return fmt.Errorf("%w: its accounts differ from what its records come to", errImage)
	}
	return nil
}
