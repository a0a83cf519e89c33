package ledger

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// copied is how many accounts are copied together for an image.
const copied = 256

// touch notes that an account will have to be copied for the next image.
func (l *Ledger) touch(a *account) {
	page := a.place / copied
	for page >= len(l.stale) {
		l.stale = append(l.stale, true)
	}
	l.stale[page] = true
}

// touched notes all the accounts that a record changes: every change is
// written down, and a record names what it changes.
func (l *Ledger) touched(r *record) {
	for _, name := range [...]messages.Name{r.account, r.change.account, r.outcome.debit, r.outcome.credit} {
		if a := l.accounts[name]; a != nil {
			l.touch(a)
		}
	}
}

// refresh copies the accounts that changed since the last time.
func (l *Ledger) refresh() {
	l.copying.Lock()
	defer l.copying.Unlock()
	for page, stale := range l.stale {
		if !stale {
			continue
		}
		from := l.order[page*copied : min(len(l.order), (page+1)*copied)]
		copies := make([]account, len(from))
		for i, a := range from {
			copies[i] = a.copy()
		}
		if page == len(l.copies) {
			l.copies = append(l.copies, nil)
		}
		l.copies[page], l.stale[page] = copies, false
	}
}

// copy shares nothing with the account that may change.
func (a *account) copy() account {
	c := *a
	c.members = slices.Clone(a.members)
	c.trail.roots = slices.Clone(a.trail.roots)
	return c
}

// The state is written in chunks behind their lengths, so that it is read
// with little memory; an empty one is the last.
const (
	accountsChunk = iota + 1
	holdsChunk
	duesChunk
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

func (r *reader) hold(l *Ledger) *hold {
	h := &hold{
		id: r.text(), account: l.accounts[r.text()], payee: r.text(), amount: messages.Credits(r.int()),
		expires: messages.Time(r.int()), job: messages.JobID(r.uint()), by: r.text(), member: r.text(), place: -1,
	}
	for range r.count(3) {
		h.draws = append(h.draws, draw{grant: r.text(), expires: messages.Time(r.int()), amount: messages.Credits(r.int())})
	}
	return h
}

// compareState compares what the records came to with what is written down.
func (l *Ledger) compareState(r *source) error {
	var is bytes.Buffer
	if err := l.Capture().writeState(&is); err != nil {
		return err
	}
	written := make([]byte, is.Len())
	if _, err := io.ReadFull(r, written); err != nil {
		return damaged("its accounts", err)
	}
	if !bytes.Equal(written, is.Bytes()) {
		return fmt.Errorf("%w: its accounts differ from what its records come to", errImage)
	}
	return nil
}

// readDues takes the queue of expiries as it is written down.
func (l *Ledger) readDues(r *source) error {
	l.dues = nil
	if err := l.readChunks(r); err != nil {
		return err
	}
	for i, d := range l.dues {
		if i > 0 && l.dues.Less(i, i-1) || l.accounts[d.name] == nil {
			return fmt.Errorf("%w: its queue of expiries cannot be", errImage)
		}
	}
	return nil
}

// readChunks reads up to the empty chunk.
func (l *Ledger) readChunks(r *source) error {
	var raw []byte
	for {
		var err error
		if raw, err = readText(r, raw, maxChunk); err != nil {
			return damaged("its accounts", err)
		}
		if len(raw) == 0 {
			return nil
		}
		if !l.readChunk(string(raw)) {
			return fmt.Errorf("%w: its accounts cannot be read", errImage)
		}
	}
}

// readState takes the state as it is written down.
func (l *Ledger) readState(r *source) error {
	clear(l.accounts)
	l.order, l.copies, l.stale, l.names = nil, nil, nil, names{}
	if err := l.readChunks(r); err != nil {
		return err
	}
	done, err := binary.ReadUvarint(r)
	if err != nil {
		return damaged("its accounts", err)
	}
	l.done = done
	return l.checkState()
}

// maxChunk bounds a chunk in bytes: an account may have thousands of members.
const maxChunk = 1 << 30

func (l *Ledger) readChunk(s string) bool {
	r := reader{s: s}
	kind := r.byte()
	for range r.count(1) {
		switch kind {
		case accountsChunk:
			l.readAccount(&r)
		case holdsChunk:
			h := r.hold(l)
			if h.account == nil || l.holds[h.id] != nil {
				return false
			}
			l.addHold(h)
		case duesChunk:
			l.dues = append(l.dues, due{messages.Time(r.int()), r.text()}) // ascending, and so a heap
		default:
			return false
		}
	}
	return r.ok()
}

func (l *Ledger) readAccount(r *reader) {
	name := r.text()
	if l.accounts[name] != nil {
		r.fail()
		return
	}
	a := l.open(name)
	r.account(a)
	for i := range a.members {
		m := &a.members[i]
		if m.left {
			continue
		}
		projects := l.projects[m.name]
		at, _ := slices.BinarySearch(projects, a.name)
		l.projects[m.name] = slices.Insert(projects, at, a.name)
	}
}

// checkState refuses a state that cannot be: it comes without all the records
// that it could be recomputed from.
func (l *Ledger) checkState() error {
	if l.issuer = l.accounts[messages.IssuerAccount]; l.issuer == nil || l.accounts[messages.SiteAccount] == nil {
		return fmt.Errorf("%w: the bank's own accounts are missing", errImage)
	}
	reserved := make(map[*account]messages.Credits, len(l.holds))
	for _, h := range l.holds {
		reserved[h.account] += h.amount
	}
	var total messages.Credits
	for _, a := range l.order {
		total += a.balance
		if a.reserved != reserved[a] || a.trail.last() > l.journal.count {
			return fmt.Errorf("%w: account %q does not agree with its holds or entries", errImage, a.name)
		}
	}
	if total != 0 {
		return fmt.Errorf("%w: its balances do not sum to zero", errImage)
	}
	l.balances = -l.issuer.balance
	return nil
}
