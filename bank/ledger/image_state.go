package ledger

import (
	"encoding/binary"
	"io"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// The state is written in chunks, so reading it takes little memory. Each chunk comes after its length. An empty chunk
// ends the state.
const (
	accountsChunk = iota + 1
	holdsChunk
	trustChunk
)

// writeState writes the accounts in the order of opening, the pending holds by identifier, and
// the number of transfers done.
func (img *Image) writeState(out io.Writer) error {
	for _, page := range img.accounts {
		if err := writeChunk(out, accountsChunk, page, (*codec).account); err != nil {
			return err
		}
	}
	holds := make([]*hold, len(img.holds))
	for i := range holds {
		holds[i] = &img.holds[i]
	}
	slices.SortFunc(holds, func(a, b *hold) int { return strings.Compare(a.id, b.id) })
	for page := range slices.Chunk(holds, copied) {
		if err := writeChunk(out, holdsChunk, page, func(c *codec, h **hold) { c.hold(*h, nil) }); err != nil {
			return err
		}
	}
	if img.trust.from != 0 {
		if err := writeChunk(out, trustChunk, []trust{img.trust}, func(c *codec, t *trust) { c.trust(t, img.now) }); err != nil {
			return err
		}
	}
	_, err := out.Write(binary.AppendUvarint([]byte{0}, img.totals.Transfers))
	return err
}

func writeChunk[T any](out io.Writer, kind byte, items []T, item func(*codec, *T)) error {
	w := codec{b: []byte{kind}}
	list(&w, &items, 1, item)
	_, err := out.Write(append(binary.AppendUvarint(nil, uint64(len(w.b))), w.b...))
	return err
}

// account encodes or decodes all fields of an account. The fields could be computed from the account's records, but an
// image may lack these records.
func (c *codec) account(a *account) {
	c.text(&a.name)
	c.standing(&a.standing)
	number(c, &a.granted)
	number(c, &a.spent)
	number(c, &a.credit)
	c.flag(&a.project)
	c.text(&a.title)
	octet(c, &a.frost.rank)
	c.text(&a.frost.by)
	c.text(&a.frost.why)
	c.uint(&a.trail.count)
	list(c, &a.trail.roots, 2, (*codec).root)
	list(c, &a.lots, 4, (*codec).lot)
	list(c, &a.members, 6, func(c *codec, m **member) {
		if c.reads {
			*m = new(member)
		}
		c.part(*m)
	})
}

func (c *codec) root(r *root) {
	c.uint(&r.number)
	c.uint(&r.size)
}

func (c *codec) lot(o *lot) {
	c.text(&o.grant)
	number(c, &o.expires)
	number(c, &o.free)
	number(c, &o.held)
}

func (c *codec) part(m *member) {
	c.text(&m.name)
	octet(c, &m.role)
	number(c, &m.limit)
	number(c, &m.spent)
	number(c, &m.held)
	c.flag(&m.left)
}

// hold encodes or decodes a hold. The hold's account is encoded as its name. When a hold is decoded, the account of
// this name is taken from `as`.
func (c *codec) hold(h *hold, as *accounts) {
	c.text(&h.id)
	var name messages.Name
	if !c.reads {
		name = h.account.name
	}
	if c.text(&name); c.reads {
		h.account = as.byName[name]
	}
	c.text(&h.payee)
	number(c, &h.amount)
	number(c, &h.expires)
	c.uint((*uint64)(&h.job))
	c.text(&h.by)
	c.text(&h.member)
	list(c, &h.draws, 3, (*codec).draw)
}

func (c *codec) draw(d *draw) {
	c.text(&d.grant)
	number(c, &d.expires)
	number(c, &d.amount)
}
