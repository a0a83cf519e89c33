package state

import (
	"math/rand/v2"

	"github.com/candor-grid/candor/messages"
)

// State is what a node agent knows. It is not safe for concurrent use.
type State struct {
	rng     *rand.Rand
	slots   []messages.ClassSlots
	can     []messages.Name // abilities of the node
	classes []class         // by name, in the order of slots
	markets []*market
	term    uint64 // highest seen

	phase   phase
	session uint64
	lease   messages.Duration
	renewed messages.Time // the lease runs from here
	beat    messages.Time // when to send an exchange though there is nothing to say

	// The request under way, or waiting to be sent again.
	request   *Request
	seq       uint64        // of the last exchange made
	firstSent messages.Time // of the request's content
	waiting   bool          // for an answer; otherwise for retryAt
	retryAt   messages.Time // when to send the request again
	joinAt    messages.Time // when to register
	failures  int
	ids       uint64

	hand     map[messages.Attempt]*task
	alive    int                       // tasks in hand and not ended
	held     map[messages.Attempt]bool // what is not to run, of this
	version  uint64
	finished []messages.Finished // ended, and in no exchange yet
	gathers  messages.Time       // until when these wait for more; 0: they do not
	closing  bool
	paused   bool // nothing can be started for now
	out      Actions
}

// phase is how far the session has come.
type phase uint8

const (
	joining phase = iota // registers, or is about to
	joined               // holds a lease
	leaving              // lost its lease: waits for its tasks to end, then joins anew
)

// class is the slots of one class. Every slot is free, claiming or taken by a
// task.
type class struct {
	name     messages.Name
	slots    int
	tasks    int // in hand, not ended and not held
	claiming int // claimed in the exchange under way
	awake    int // free and to be claimed for in the next exchange
}

// free returns the slots without a task or a claim.
func (c *class) free() int { return max(0, c.slots-c.tasks-c.claiming) }

// task is an attempt in hand: from the grant until its end was reported.
type task struct {
	class   int
	start   *Start // what it begins with; nil once it has begun
	held    bool   // not to run for now: leaves its slot to others
	ended   bool
	stopped bool // told to end
	killed  bool
}

// New returns the state of an agent that offers slots and knows nothing yet.
// Every decision by chance comes from rng.
func New(slots []messages.ClassSlots, rng *rand.Rand) *State {
	s := &State{rng: rng, slots: slots, hand: map[messages.Attempt]*task{}}
	for _, c := range slots {
		s.classes = append(s.classes, class{name: c.Class, slots: c.Slots})
	}
	s.newSession()
	return s
}

// SetAbilities says what the node can do to a task, for registrations to come.
func (s *State) SetAbilities(can []messages.Name) { s.can = can }

// Pause has the node claim nothing while it can start nothing, and claim again
// afterwards.
func (s *State) Pause(paused bool) {
	if s.paused == paused {
		return
	}
	s.paused = paused
	for at := range s.classes {
		s.classes[at].awake = 0
		for _, m := range s.markets {
			s.wake(at, &m.classes[at])
		}
	}
}

// Session returns the session's number.
func (s *State) Session() uint64 { return s.session }

// Joined reports whether the node holds a lease.
func (s *State) Joined() bool { return s.phase == joined }

// Running returns the number of attempts that have not ended.
func (s *State) Running() int { return s.alive }

// Idle returns the number of slots without a task or a claim.
func (s *State) Idle() (n int) {
	for i := range s.classes {
		n += s.classes[i].free()
	}
	return n
}

// newSession begins to register under a new number.
func (s *State) newSession() {
	for s.session = 0; s.session == 0; {
		s.session = s.rng.Uint64()
	}
	s.phase, s.seq, s.failures = joining, 0, 0
	s.drop()
}

// drop forgets the request under way; its answer will not be listened to.
func (s *State) drop() {
	s.request, s.waiting, s.retryAt = nil, false, 0
	for i := range s.classes {
		s.classes[i].claiming, s.classes[i].awake = 0, 0
	}
}

// Close begins the end: nothing more is claimed, tasks are ended, with grace
// or without, and reported. Actions.Closed tells when that is done.
func (s *State) Close(kill bool) {
	s.closing = true
	s.stopAll(kill)
}

// stopAll ends every task in hand.
func (s *State) stopAll(kill bool) {
	for _, a := range s.inHand() {
		s.stop(a, kill)
	}
}

// stop ends a task; saying so again changes nothing, unless it is to be
// killed now.
func (s *State) stop(a messages.Attempt, kill bool) {
	t := s.hand[a]
	if t == nil || t.ended || t.killed || t.stopped && !kill {
		return
	}
	t.stopped, t.killed = true, kill
	if t.start != nil {
		s.Ended(messages.Finished{Attempt: a, Outcome: messages.Stopped, Detail: "stopped before it started"})
		return
	}
	s.out.Stop = append(s.out.Stop, Stop{Attempt: a, Kill: kill})
}

func (s *State) classOf(name messages.Name) int {
	for i := range s.classes {
		if s.classes[i].name == name {
			return i
		}
	}
	return -1
}
