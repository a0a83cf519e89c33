package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/parts"
)

// magic is the first bytes of every image.
const magic = "candor-ledger-4\n"

// Image is a ledger at one moment. It does not change with the ledger, and any goroutine may use it.
type Image struct {
	now      messages.Time
	journal  journal
	accounts [][]account // copies, in the order of opening
	holds    []hold      // copies
	totals   Totals
	trust    trust // a copy
}

// Capture returns an image. It copies the pending holds, and the accounts that changed since the last image.
func (l *Ledger) Capture() *Image {
	l.accounts.refresh()
	img := &Image{now: l.records.now, journal: l.records.journal.prefix(), accounts: append([][]account(nil), l.accounts.copies...), totals: l.Totals()}
	img.holds = make([]hold, 0, len(l.holds.byID))
	for _, h := range l.holds.byID {
		img.holds = append(img.holds, *h)
	}
	img.trust = l.requests.trust.copy()
	return img
}

// Records returns the number of records in the image's journal. If two images of the same ledger have the same number
// of records, they differ at most in their time.
func (img *Image) Records() uint64 { return img.journal.count }

// Head returns the hash of the image's journal.
func (img *Image) Head() Head { return img.journal.chain.head }

// Tail returns the records after the last full segment.
func (img *Image) Tail() *Segment {
	tail := img.journal.tail
	return &tail
}

// Now returns the ledger's time.
func (img *Image) Now() messages.Time { return img.now }

// each calls f for every account, in the order in which the accounts were opened.
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

// Hash returns the image's digest, which is equal on replicas that applied the same commands. It does not read the
// records, so its cost does not depend on their number. Instead it reads a hash of all records, the head of the
// journal.
func (img *Image) Hash() [sha256.Size]byte {
	h := sha256.New()
	var w codec
	w.opening(img)
	h.Write(w.b)      //nolint:errcheck // writing to a hash cannot fail
	img.writeState(h) //nolint:errcheck // writing to a hash cannot fail
	return [sha256.Size]byte(h.Sum(nil))
}

// WriteTo writes the image, followed by the image's SHA-256. If syncing the store's segments makes them survive a power
// loss, the image has only a checksum of each segment. Otherwise the image has every record.
func (img *Image) WriteTo(w io.Writer) (int64, error) {
	durable, err := img.journal.store.Sync()
	if err != nil {
		return 0, fmt.Errorf("the bank's history cannot be made durable: %w", err)
	}
	return parts.WriteHashed(w, func(out io.Writer) error { return img.body(out, durable) })
}

// opening encodes or decodes the time, the number of records and the journal's head.
func (c *codec) opening(img *Image) {
	c.b = append(c.b, magic...)
	number(c, &img.now)
	c.uint(&img.journal.count)
	c.raw(img.journal.chain.head[:])
}

// body writes four parts: the head of the image (see the method `opening`), the sums of the segments that a durable
// store keeps, all other records, and the state. Before each record it writes the record's length.
func (img *Image) body(out io.Writer, durable bool) error {
	var w codec
	w.opening(img)
	from := uint64(1)
	elsewhere := img.journal.sealed
	if !durable {
		elsewhere = nil
	}
	w.b = binary.AppendUvarint(w.b, uint64(len(elsewhere)))
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
	return img.writeState(out)
}

func (c *codec) sum(s *Sum) {
	for _, n := range []uint64{s.First, uint64(s.Count), uint64(s.Size)} {
		c.uint(&n)
	}
	c.raw(s.After[:])
	c.raw(s.Digest[:])
}
