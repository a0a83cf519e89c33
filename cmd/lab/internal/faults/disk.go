package faults

// lose switches a machine off. Each replica on the machine also loses its disk, unless another replica of its group
// lacks data. This condition ensures that at most one of the three replicas of a group lacks data.
func (m *machine) lose() {
	m.powerOff()
	for _, g := range []*group{m.site.books, m.site.banks} {
		if r := g.replicas[m.index]; !r.doubtful && g.othersHaveAll(r) {
			r.lose()
		}
	}
}

// lose makes the replica lose everything, including its votes. Then it is doubtful, as in package mailbox: it does not
// vote or count for a majority until a leader has brought it up to date.
func (r *replica) lose() {
	r.log, r.base, r.baseAt, r.synced, r.image = nil, 0, 0, 0, nil
	r.term, r.voted = 0, -1
	r.disk++
	if _, is := r.state.(*bankState); is {
		*r.host.files, r.harmed = *newFiles(), false
	}
	r.doubtful = r.Bug != ForgottenVote
}

// The group has three replicas. Replica p has lost its disk, and may have forgotten that it voted for a leader of a
// later term. While it gets the log again, it reports the last entry that it has (`durable`). readmit handles such a
// report at the leader. First this leader and the third replica commit a new entry. If there were a leader of a later
// term, the third replica would know that term, and would refuse the entry. So the entry proves that there is none.
// When p has all committed entries, it counts again in majorities.
func (r *replica) readmit(p *replica, disk int, durable uint64) {
	if r.disks[p.me] < disk {
		r.disks[p.me], r.match[p.me], r.next[p.me] = disk, 0, durable+1
		r.log = append(r.log, entry{term: r.term})
		r.needs[p.me] = r.last()
		r.flush()
		r.replicate()
		return
	}
	r.next[p.me] = max(r.next[p.me], durable+1)
	if r.commit < r.needs[p.me] || durable < r.commit {
		return
	}
	term := r.term
	r.tell(p, func() {
		if p.disk == disk && p.term == term {
			p.doubtful = false
		}
	})
}
