package faults

import (
	"bytes"

	"github.com/candor-grid/candor/bank/history"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/siteclock"
)

// machine is one of a site's three machines. It has a replica of the book and one of the bank, with one disk and clock.
type machine struct {
	site  *site
	name  string
	index int // number of the machine in its site
	host
	slow  bool
	time  *siteclock.Host
	kept  *messages.Duration // difference between the site's time and the machine's, as stored on disk; nil means none since this boot
	files *files             // files of its bank's history
	store *history.Store     // store of these files since the last start
}

// host is a machine with its own clock. It can be switched off.
type host struct {
	down   bool
	offset messages.Duration
	life   int // number of restarts; actions that were planned before the last one are ignored
}

// shell is the behaviour of a leader, together with the data that the leader has in addition to the replicated state. A
// leader gets its shell after it has applied the first entry of its own term. So it has then applied everything that
// was acknowledged before.
type shell interface {
	applied() // an entry was applied
}

type entry struct {
	term uint64
	data []byte // nil means a new leader's first entry
}

type role uint8

const (
	follower role = iota
	candidate
	leading
)

// group has the three replicas of one log. It also has the list of committed entries. An entry is added to this list
// when the first replica applies it.
type group struct {
	*site
	name      string
	replicas  [3]*replica
	reference automaton
	history   []entry
	hashes    map[uint64][32]byte // hash of the state after every comparedEvery-th entry
	led       uint64              // latest term with a leader
	observe   func(data []byte, result any) error
	lead      func(*replica) shell
}

// replica is a member of a group. Its log is on the disk up to the entry with the index `synced`. Its image has the
// effects of the entries up to the index `base`.
type replica struct {
	*group
	me     int
	fresh  func() automaton
	host   *machine
	term   uint64
	voted  int
	log    []entry
	base   uint64
	baseAt uint64 // term of the entry at base
	synced uint64
	image  []byte
	disk   int // increases when the disk is lost

	doubtful bool // the disk was lost, and no leader has brought the replica up to date yet
	harmed   bool // a file of the history is known to be damaged
	out      bool // the replica cannot start before a leader has the entries that its history lacks

	role    role
	commit  uint64
	applied uint64
	matched uint64 // the log agrees with the leader's up to this entry
	next    [3]uint64
	match   [3]uint64
	state   automaton
	waiting map[uint64]func(any)
	electAt messages.Time
	syncing bool
	begun   uint64    // index of the leader's first entry
	disks   [3]int    // at a leader: the disk from which each doubtful replica last reported
	needs   [3]uint64 // entry that must be committed before each doubtful replica counts again
	shell   shell     // set if the replica leads and has applied all earlier entries
	steady  *siteclock.Steady
}

// succeeded reports whether some replica has led in a later term than this replica's term.
func (r *replica) succeeded() bool { return r.led > r.term }

func (r *replica) last() uint64 { return r.base + uint64(len(r.log)) }

func (r *replica) termAt(i uint64) uint64 {
	if i == r.base {
		return r.baseAt
	}
	return r.log[i-r.base-1].term
}

func (r *replica) boot() {
	r.role, r.commit, r.applied, r.matched, r.syncing, r.shell = follower, r.base, r.base, 0, false, nil
	r.waiting, r.state = map[uint64]func(any){}, r.fresh()
	r.keepTime()
	r.out = false
	if r.image != nil {
		err := r.state.restore(r.image)
		if r.out = messages.KindOf(err) == messages.Unavailable; r.out {
			r.after(&r.host.host, second, r.boot)
			return
		}
		if err != nil {
			r.violate("invariant 4: an image of %s cannot be read: %v", r.name, err)
		} else if r.state.hash() != r.hashes[r.base] {
			r.violate("invariant 4: an image of %s gives another state when it is restored", r.name)
		}
	}
	r.steady.Reached(r.state.at())
	r.delayElection()
	r.tick()
	r.after(&r.host.host, second, r.examine)
}

// crash drops the replica's memory, and a part of the unsynced log entries.
func (r *replica) crash() {
	kept := r.synced
	if open := r.last() - r.synced; open > 0 && r.Bug != SkippedSync {
		kept += uint64(r.rng.Int64N(int64(open) + 1))
	}
	r.log = r.log[:kept-r.base]
	r.synced, r.role, r.waiting, r.shell = kept, follower, nil, nil
}

// propose appends an entry. The function `answered` is called when the entry is applied, and never if the entry is
// lost.
func (r *replica) propose(data []byte, answered func(any)) {
	r.log = append(r.log, entry{r.term, data})
	if answered != nil {
		r.waiting[r.last()] = answered
	}
	r.flush()
	r.replicate()
}

// flush starts to write the log to the disk. The write takes some simulated time.
func (r *replica) flush() {
	if r.syncing || r.synced == r.last() {
		return
	}
	r.syncing = true
	cost := second / 500
	if r.host.slow {
		cost = 2 * second
	}
	if r.Bug == SkippedSync { // with this bug, the log is synced some time later
		cost = 10 * second
	}
	upTo, term := r.last(), r.term
	r.after(&r.host.host, cost, func() {
		r.syncing = false
		if r.term == term { // the log was not shortened since then
			r.synced = max(r.synced, min(upTo, r.last()))
		}
		r.flush()
		if r.role == leading {
			r.decide()
		} else if r.Bug != SkippedSync {
			for _, p := range r.replicas {
				if p != r && p.role == leading && p.term == r.term {
					r.acknowledge(p, r.term)
				}
			}
		}
	})
}

// decide commits the entries that a majority has on its disks.
func (r *replica) decide() {
	r.match[r.me] = r.synced
	if r.Bug == SkippedSync {
		r.match[r.me] = r.last()
	}
	a, b, c := r.match[0], r.match[1], r.match[2]
	median := max(min(a, b), min(max(a, b), c))
	if median > r.commit && median >= r.base && r.termAt(median) == r.term {
		r.commit = median
		r.advance()
	}
}

func (r *replica) advance() {
	for r.applied < min(r.commit, r.last()) {
		r.applied++
		e := r.log[r.applied-r.base-1]
		result := r.applyAt(r.applied, e)
		if answered := r.waiting[r.applied]; answered != nil {
			delete(r.waiting, r.applied)
			answered(result)
		}
		if r.shell != nil {
			r.shell.applied()
		}
		r.serve()
	}
	if r.applied-r.base >= 40 && r.synced >= r.applied && r.applied%comparedEvery == 0 {
		r.image, r.baseAt = r.state.capture(), r.termAt(r.applied)
		r.log = append([]entry(nil), r.log[r.applied-r.base:]...)
		r.base = r.applied
	}
}

// serve makes the replica act as a leader: it creates the code around the state (the shell). It does so only if the
// replica leads, has applied its first entry as a leader, and knows the time for commands. If the shell exists already,
// serve does nothing.
func (r *replica) serve() {
	if r.shell == nil && r.role == leading && r.applied >= r.begun && r.steady.Ready() {
		r.note(r.site.name, true, r.host.name, "leads", r.name, "in term", r.term)
		r.shell = r.lead(r)
	}
}

// applyAt applies an entry, and compares the result with the results of other replicas.
func (r *replica) applyAt(i uint64, e entry) any {
	g := r.group
	result := r.state.apply(e.data)
	r.steady.Reached(r.state.at())
	if i == uint64(len(g.history))+1 {
		g.history = append(g.history, e)
		r.compare(i)
		g.committed(e.data, result)
		g.check(g.site, g.observe(e.data, g.reference.apply(e.data)))
		return result
	}
	if h := g.history[i-1]; h.term != e.term || !bytes.Equal(h.data, e.data) {
		r.violate("invariant 3: entry %d of %s was committed, but host %s has a different entry", i, g.name, r.host.name)
	}
	r.compare(i)
	return result
}

// Hashing a state takes longer than applying an entry. So the states of the replicas are compared only after every
// comparedEvery entries. This finds the same faults, because a difference does not disappear.
const comparedEvery = 5

// compare compares the state of this replica after log entry i with the state of the first replica that applied this
// entry.
func (r *replica) compare(i uint64) {
	if i%comparedEvery != 0 {
		return
	}
	hash := r.state.hash()
	first, known := r.hashes[i]
	switch {
	case !known:
		r.hashes[i] = hash
	case hash != first:
		r.violate("invariant 4: the state of %s differs on host %s after entry %d, or up to %d entries earlier", r.group.name, r.host.name, i, comparedEvery-1)
	}
}

// This method compares the states of all replicas with the reference state at the end of a run. The comparison is
// necessary because the checkers have read only the reference state.
func (g *group) same() {
	hash := g.reference.hash()
	for _, r := range g.replicas {
		if r.applied == uint64(len(g.history)) && r.state.hash() != hash {
			g.violate("invariant 4: a replica of %s of %s has another state than the checkers saw", g.name, g.site.name)
		}
	}
}
