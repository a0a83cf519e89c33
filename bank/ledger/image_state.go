package ledger

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// The state is written in chunks behind their lengths, so that it is read
// with little memory; an empty one is the last.
const (
	accountsChunk = iota + 1
	holdsChunk
	duesChunk
	trustChunk
)

// writeState writes what the ledger came to: the accounts in the order of
// opening, the pending holds by identifier, and how many transfers were done.
func (img *Image) writeState(out io.Writer) error {
	for _, page := range img.accounts {
		err := writeChunk(out, accountsChunk, len(page), func(w *writer, i int) { w.account(&page[i]) })
		if err != nil {
			return err
		}
	}
	holds := make([]*hold, len(img.holds))
	for i := range holds {
		holds[i] = &img.holds[i]
	}
	slices.SortFunc(holds, func(a, b *hold) int { return strings.Compare(a.id, b.id) })
	for page := range slices.Chunk(holds, copied) {
		err := writeChunk(out, holdsChunk, len(page), func(w *writer, i int) { w.hold(page[i]) })
		if err != nil {
			return err
		}
	}
	if img.trust.from != 0 {
		if err := writeChunk(out, trustChunk, 1, func(w *writer, _ int) { w.trust(&img.trust, img.now) }); err != nil {
			return err
		}
	}
	var w writer
	w.uint(0)
	w.uint(img.totals.Transfers)
	_, err := out.Write(w.b)
	return err
}

// writeDues writes when something may expire, which does not follow from the
// records: what is past is no more in the queue.
func (img *Image) writeDues(out io.Writer) error {
	dues := slices.Clone(img.dues)
	slices.SortFunc(dues, func(a, b due) int { return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.name, b.name)) })
	for page := range slices.Chunk(dues, copied) {
		err := writeChunk(out, duesChunk, len(page), func(w *writer, i int) { w.int(int64(page[i].at)); w.text(page[i].name) })
		if err != nil {
			return err
		}
	}
	_, err := out.Write([]byte{0})
	return err
}

func writeChunk(out io.Writer, kind byte, n int, each func(*writer, int)) error {
	var w, head writer
	w.byte(kind)
	w.uint(uint64(n))
	for i := range n {
		each(&w, i)
	}
	head.uint(uint64(len(w.b)))
	_, err := out.Write(append(head.b, w.b...))
	return err
}

// account writes all of an account: an image may have to stand without the
// records that made it.
func (w *writer) account(a *account) {
	w.text(a.name)
	w.standing(a.standing)
	w.int(int64(a.granted))
	w.int(int64(a.spent))
	w.int(int64(a.credit))
	w.flag(a.project)
	w.text(a.title)
	w.byte(byte(a.frost.rank))
	w.text(a.frost.by)
	w.text(a.frost.why)
	w.trail(&a.trail)
	w.uint(uint64(len(a.lots)))
	for i := range a.lots {
		w.lot(&a.lots[i])
	}
	w.uint(uint64(len(a.members)))
	for i := range a.members {
		w.part(&a.members[i])
	}
}

func (w *writer) lot(o *lot) {
	w.text(o.grant)
	w.int(int64(o.expires))
	w.int(int64(o.free))
	w.int(int64(o.held))
}

func (w *writer) part(m *member) {
	w.text(m.name)
	w.byte(byte(m.role))
	w.int(int64(m.limit))
	w.int(int64(m.spent))
	w.int(int64(m.held))
	w.flag(m.left)
}

func (r *reader) account(a *account) {
	a.standing = r.standing()
	a.granted, a.spent = messages.Credits(r.int()), messages.Credits(r.int())
	a.credit = messages.Credits(r.int())
	a.project, a.title = r.flag(), r.text()
	a.frost = frost{rank: freezer(r.byte()), by: r.text(), why: r.text()}
	a.trail = r.trail()
	for range r.count(4) {
		a.lots = append(a.lots, lot{grant: r.text(), expires: messages.Time(r.int()), free: messages.Credits(r.int()), held: messages.Credits(r.int())})
	}
	for range r.count(6) {
		a.members = append(a.members, r.part())
	}
}

func (r *reader) part() member {
	return member{
		name: r.text(), role: messages.Role(r.byte()), limit: messages.Credits(r.int()),
		spent: messages.Credits(r.int()), held: messages.Credits(r.int()), left: r.flag(),
	}
}

func (w *writer) trail(t *trail) {
	w.uint(t.count)
	w.uint(uint64(len(t.roots)))
	for _, r := range t.roots {
		w.uint(r.number)
		w.uint(r.size)
	}
}

func (r *reader) trail() trail {
	t := trail{count: r.uint()}
	for range r.count(2) {
		t.roots = append(t.roots, root{number: r.uint(), size: r.uint()})
	}
	return t
}

// count reads a number of things that take at least so many bytes each.
func (r *reader) count(least int) uint64 {
	n := r.uint()
	if n > uint64(len(r.s)/least) {
		r.fail()
		return 0
	}
	return n
}

func (w *writer) hold(h *hold) {
	w.text(h.id)
	w.text(h.account.name)
	w.text(h.payee)
	w.int(int64(h.amount))
	w.int(int64(h.expires))
	w.uint(uint64(h.job))
	w.text(h.by)
	w.text(h.member)
	w.uint(uint64(len(h.draws)))
	for _, d := range h.draws {
		w.text(d.grant)
		w.int(int64(d.expires))
		w.int(int64(d.amount))
	}
}

func (r *reader) hold(as *accounts) *hold {
	h := &hold{
		id: r.text(), account: as.byName[r.text()], payee: r.text(), amount: messages.Credits(r.int()),
		expires: messages.Time(r.int()), job: messages.JobID(r.uint()), by: r.text(), member: r.text(), place: -1,
	}
	for range r.count(3) {
		h.draws = append(h.draws, draw{grant: r.text(), expires: messages.Time(r.int()), amount: messages.Credits(r.int())})
	}
	return h
}
