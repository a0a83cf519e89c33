package ledger

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

func (d *loader) compareState() error {
	var is bytes.Buffer
	if err := d.ledger.Capture().writeState(&is); err != nil {
		return err
	}
	written := make([]byte, is.Len())
	if _, err := io.ReadFull(d.in, written); err != nil {
		return damaged("its accounts", err)
	}
	if !bytes.Equal(written, is.Bytes()) {
		return fmt.Errorf("%w: its accounts differ from the sum of its records", errImage)
	}
	return nil
}

func (d *loader) chunks() error {
	var raw []byte
	for {
		var err error
		if raw, err = readText(d.in, raw, maxChunk); err != nil {
			return damaged("its accounts", err)
		}
		if len(raw) == 0 {
			return nil
		}
		if !d.chunk(raw) {
			return fmt.Errorf("%w: its accounts cannot be read", errImage)
		}
	}
}

func (d *loader) state() error {
	d.accounts.clear()
	if err := d.chunks(); err != nil {
		return err
	}
	done, err := binary.ReadUvarint(d.in)
	if err != nil {
		return damaged("its accounts", err)
	}
	d.ledger.books.done = done
	return d.check()
}

// maxChunk is the maximum size of a chunk in bytes: an account may have thousands of members.
const maxChunk = 1 << 30

func (d *loader) chunk(raw []byte) bool {
	c := decoder(raw)
	var kind byte
	octet(&c, &kind)
	for range c.count(0, 1) {
		switch kind {
		case accountsChunk:
			d.account(&c)
		case holdsChunk:
			h := &hold{place: -1}
			c.hold(h, d.accounts)
			if h.account == nil || d.ledger.holds.byID[h.id] != nil {
				return false
			}
			d.ledger.holds.add(h)
		case trustChunk:
			c.trust(&d.ledger.requests.trust, 0)
		default:
			return false
		}
	}
	return c.ok()
}

// The method account reads an account from an image, enters it into the ledger, and adds it to the projects of its
// members.
func (d *loader) account(c *codec) {
	var is account
	c.account(&is)
	if d.accounts.byName[is.name] != nil {
		c.fail()
		return
	}
	a := d.accounts.open(is.name)
	is.name, is.place = a.name, a.place
	*a = is
	for _, m := range a.members {
		a.tally(m, 1)
		if m.left {
			continue
		}
		projects := d.accounts.projects[m.name]
		at, _ := slices.BinarySearch(projects, a.name)
		d.accounts.projects[m.name] = slices.Insert(projects, at, a.name)
	}
}

// check is used if the image lacks records, so that its state cannot be computed from its records. check returns an
// error if the state is impossible, for example if an account's reserved credits differ from the sum of its holds.
func (d *loader) check() error {
	if d.accounts.issuer = d.accounts.byName[money.IssuerAccount]; d.accounts.issuer == nil || d.accounts.byName[money.SiteAccount] == nil {
		return fmt.Errorf("%w: the bank's own accounts are missing", errImage)
	}
	reserved := make(map[*account]messages.Credits, len(d.ledger.holds.byID))
	for _, h := range d.ledger.holds.byID {
		reserved[h.account] += h.amount
	}
	var total messages.Credits
	for _, a := range d.accounts.order {
		total += a.balance
		if a.reserved != reserved[a] || a.trail.last() > d.records.journal.count {
			return fmt.Errorf("%w: account %q contradicts its holds or entries", errImage, a.name)
		}
	}
	if total != 0 {
		return fmt.Errorf("%w: its balances do not sum to zero", errImage)
	}
	d.accounts.balances = -d.accounts.issuer.balance
	return nil
}
