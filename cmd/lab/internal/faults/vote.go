package faults

import "github.com/candor-grid/candor/messages"

func (r *replica) delayElection() {
	r.electAt = r.now.Add(2*second + messages.Duration(r.rng.Int64N(int64(2*second))))
}

// tick is the replica's timer. If the replica is the leader, it sends heartbeats. Otherwise it may start an election.
func (r *replica) tick() {
	r.after(&r.host.host, second/2, func() {
		switch {
		case r.role == leading:
			r.replicate()
			r.serve()
		case r.now >= r.electAt:
			r.campaign()
		}
		r.tick()
	})
}

func (r *replica) campaign() {
	if r.doubtful {
		r.delayElection()
		return
	}
	r.term, r.voted, r.role = r.term+1, r.me, candidate
	r.matched = 0
	r.delayElection()
	term, last := r.term, r.last()
	lastTerm := r.termAt(last)
	for _, p := range r.replicas {
		if p != r {
			r.tell(p, func() { p.vote(r, term, last, lastTerm) })
		}
	}
}

// tell delivers a message to another replica. The message is lost if that replica's machine is off, or if the replica
// cannot start yet because its history lacks entries.
func (r *replica) tell(p *replica, do func()) {
	r.send(r.host.name, p.host.name, func() {
		if !p.host.down && !p.out {
			do()
		}
	})
}

// hear makes the replica a follower in the given term if that term is newer.
func (r *replica) hear(term uint64) {
	if term > r.term {
		r.term, r.voted, r.matched = term, -1, 0
		r.follow()
		r.waiting = map[uint64]func(any){}
	}
}

func (r *replica) vote(of *replica, term, last, lastTerm uint64) {
	r.hear(term)
	mine := r.termAt(r.last())
	if r.doubtful || term < r.term || r.voted >= 0 && r.voted != of.me || lastTerm < mine || lastTerm == mine && last < r.last() {
		return
	}
	r.voted = of.me
	r.delayElection()
	r.tell(of, func() {
		if of.role == candidate && of.term == term {
			of.elected()
		}
	})
}

// serving reports whether the replica is a leader that has applied everything that was acknowledged.
func (r *replica) serving() bool { return !r.host.down && r.shell != nil }

func (r *replica) follow() { r.role, r.shell = follower, nil }

// elected makes a candidate the leader. One other replica's vote is enough: two votes are a majority of three.
func (r *replica) elected() {
	r.role, r.led = leading, max(r.led, r.term)
	for i := range r.next {
		r.next[i], r.match[i] = r.last()+1, 0
	}
	r.log = append(r.log, entry{term: r.term})
	r.begun = r.last()
	r.disks, r.needs = [3]int{}, [3]uint64{}
	r.flush()
	r.replicate()
}

// verify asks the other replicas whether there is a leader in a later term. It calls the function `do` when a majority
// has answered that there is none.
func (r *replica) verify(do func()) {
	term, done := r.term, false
	for _, p := range r.replicas {
		if p == r {
			continue
		}
		r.tell(p, func() {
			if p.hear(term); p.doubtful || p.term > term {
				return
			}
			p.tell(r, func() {
				if !done && r.role == leading && r.term == term {
					done = true
					do()
				}
			})
		})
	}
}
