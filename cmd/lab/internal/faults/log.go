package faults

import "github.com/candor-grid/candor/messages"

func (r *replica) replicate() {
	for _, p := range r.replicas {
		if p == r {
			continue
		}
		term, commit := r.term, r.commit
		if r.next[p.me] <= r.base {
			image, base, baseAt := r.image, r.base, r.baseAt
			r.tell(p, func() { p.install(r, term, image, base, baseAt) })
			continue
		}
		from := r.next[p.me]
		prev, entries := r.termAt(from-1), append([]entry(nil), r.log[from-1-r.base:]...)
		r.tell(p, func() { p.take(r, term, from, prev, entries, commit) })
	}
}

func (r *replica) install(from *replica, term uint64, image []byte, base, baseAt uint64) {
	r.hear(term)
	if term < r.term {
		return
	}
	r.delayElection()
	if base > r.commit && !r.has(base, baseAt) {
		state := r.fresh()
		if err := state.restore(image); messages.KindOf(err) == messages.Unavailable {
			return // the leader will send this entry again
		} else if err != nil {
			r.violate("invariant 4: an image of %s cannot be read: %v", r.name, err)
		}
		r.log, r.base, r.baseAt, r.image, r.synced = nil, base, baseAt, image, base
		r.commit, r.applied = base, base
		r.state, r.syncing = state, false
	}
	r.matched = max(r.matched, base)
	r.acknowledge(from, term)
}

// has reports whether the log has an entry with this index and term. If it does, an image of the state up to this entry
// contains nothing new for the replica. The replica must then keep the entries after this index, because they may have
// been acknowledged.
func (r *replica) has(i, term uint64) bool {
	return r.base < i && i <= r.last() && r.termAt(i) == term
}

// take handles entries that a leader has sent to this replica, in the same way as Raft's AppendEntries.
func (r *replica) take(from *replica, term, first, prev uint64, entries []entry, commit uint64) {
	r.hear(term)
	if term < r.term {
		return
	}
	r.follow()
	r.delayElection()
	if first-1 > r.last() || first-1 >= r.base && r.termAt(first-1) != prev {
		if r.doubtful {
			r.acknowledge(from, term)
		}
		last := min(r.last(), first-1)
		r.tell(from, func() { from.stepBack(r, term, last) })
		return
	}
	for i, e := range entries {
		at := first + uint64(i)
		if at <= r.base || at <= r.last() && r.termAt(at) == e.term {
			continue
		}
		if at <= r.last() {
			r.log = r.log[:at-1-r.base]
			r.synced = min(r.synced, at-1)
		}
		r.log = append(r.log, e)
	}
	r.matched = max(r.matched, first-1+uint64(len(entries)))
	r.commit = max(r.commit, min(commit, r.matched))
	r.advance()
	r.flush()
	r.acknowledge(from, term)
}

func (r *replica) stepBack(p *replica, term, last uint64) {
	if r.role == leading && r.term == term {
		r.next[p.me] = max(r.match[p.me]+1, min(last+1, r.next[p.me]-1))
	}
}

// acknowledge tells the leader which part of its log is on this disk.
func (r *replica) acknowledge(to *replica, term uint64) {
	durable := min(r.matched, r.synced)
	if r.Bug == SkippedSync {
		durable = r.matched
	}
	disk, doubtful := r.disk, r.doubtful
	r.tell(to, func() {
		switch {
		case to.role != leading || to.term != term || disk < to.disks[r.me]: // the disk was lost since then
		case doubtful:
			to.readmit(r, disk, durable)
		case durable > to.match[r.me]:
			to.match[r.me] = durable
			to.next[r.me] = durable + 1
			to.decide()
		}
	})
}
