package ledger

import (
	"bytes"
	"maps"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// copy returns a trust that later changes leave as it is.
func (t *trust) copy() trust {
	c := *t
	c.roles, c.revoked, c.sessions, c.used = slices.Clone(t.roles), maps.Clone(t.revoked), maps.Clone(t.sessions), maps.Clone(t.used)
	return c
}

// trust writes who is believed at a time: what has ended by then counts no more.
func (w *writer) trust(t *trust, now messages.Time) {
	w.uint(t.from)
	w.uint(uint64(len(t.roles)))
	for _, r := range t.roles {
		w.text(r.role)
		w.text(r.key)
		w.flag(r.ended)
	}
	w.uint(uint64(len(t.revoked)))
	for _, key := range slices.Sorted(maps.Keys(t.revoked)) {
		w.text(key)
	}
	sessions := slices.DeleteFunc(slices.Sorted(maps.Keys(t.sessions)), func(n uint64) bool { return t.sessions[n].expires <= now })
	w.uint(uint64(len(sessions)))
	for _, n := range sessions {
		s := t.sessions[n]
		w.uint(n)
		w.text(s.by)
		w.byte(byte(s.rank))
		w.text(s.key)
		w.text(s.issuer)
		w.text(string(s.public))
		w.int(int64(s.expires))
	}
	used := slices.SortedFunc(maps.Keys(t.used), func(a, b digest) int { return bytes.Compare(a[:], b[:]) })
	used = slices.DeleteFunc(used, func(d digest) bool { return t.used[d] < now })
	w.uint(uint64(len(used)))
	for _, d := range used {
		w.b = append(w.b, d[:]...)
		w.int(int64(t.used[d]))
	}
}

// trust reads what trust wrote, and leaves the root as it is.
func (r *reader) trust(t *trust) {
	*t = trust{root: t.root, from: r.uint(), revoked: map[string]bool{}, sessions: map[uint64]*session{}, used: map[digest]messages.Time{}}
	for range r.count(3) {
		t.roles = append(t.roles, roleKey{role: r.text(), key: r.text(), ended: r.flag()})
	}
	for range r.count(1) {
		t.revoked[r.text()] = true
	}
	for range r.count(7) {
		n := r.uint()
		t.sessions[n] = &session{by: r.text(), rank: Rank(r.byte()), key: r.text(), issuer: r.text(), public: []byte(r.text()), expires: messages.Time(r.int())}
	}
	for range r.count(17) {
		var d digest
		copy(d[:], r.raw(len(d)))
		t.used[d] = messages.Time(r.int())
	}
}

// raw returns so many bytes as they are.
func (r *reader) raw(n int) string {
	if len(r.s) < n {
		r.fail()
		return ""
	}
	v := r.s[:n]
	r.s = r.s[n:]
	return v
}
