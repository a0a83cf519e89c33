package bus

import (
	"slices"
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
)

// poolMemory bounds the requests that a service runs or lets wait, in bytes.
const poolMemory = 128 << 20

// A service refuses a request if the requests that run or wait take too much memory. smallRequest is the greatest size
// in bytes of a request that is never refused for this reason. So a caller who sends large requests does not keep small
// requests of the same caller out. For example, all accounts with tasks on a node are one caller. In a service that
// lets many requests wait, the limit is lower: all waiting small requests may take half of poolMemory.
const smallRequest = 8 << 10

// stopTimeout bounds how long Stop and Close wait for running handlers.
const stopTimeout = 5 * time.Second

// pool runs a bounded number of jobs at the same time, and lets a bounded number of jobs wait. The jobs of one caller
// start in order. Callers take turns, so a caller with many jobs does not delay other callers. An idle pool has no
// goroutine.
//
// A job may run for seconds, for example if it waits for output. So a caller never has more running jobs than places
// are free: a job of a caller who runs none starts at once. One caller can use half of the places, two can use a third
// each. All users of another site are one caller, because that site could give them any number of names. The same rule
// bounds the memory that the requests of a caller take while they run or wait.
type pool struct {
	limit, room int
	memory      int // bytes
	small       int // bytes; see smallRequest

	mu      sync.Mutex
	running int
	of      map[messages.Name]int // number of running jobs by caller
	held    int                   // bytes of all running and waiting jobs
	heldBy  map[messages.Name]int // the same by caller
	waiting int
	queues  map[messages.Name]*queue
	turns   []*queue // queues with jobs, in the order of their turns
	closed  bool
	closing chan struct{} // closed when `closed` is set
	idle    chan struct{} // closed when closed is set and no job runs
}

// queue has the waiting jobs of one caller.
type queue struct {
	caller messages.Name
	jobs   []job
}

// job is a function to run. The pool calls either run or refuse, once.
type job struct {
	caller      messages.Name
	size        int // bytes of the request
	run, refuse func()
}

func newPool(limit, room int) *pool {
	return &pool{limit: limit, room: room, memory: poolMemory, small: min(smallRequest, poolMemory/2/max(room, 1)), of: map[messages.Name]int{}, heldBy: map[messages.Name]int{}, queues: map[messages.Name]*queue{}, closing: make(chan struct{}), idle: make(chan struct{})}
}

// fate says whether the pool accepted a job, and if not, why.
type fate uint8

const (
	accepted fate = iota
	full          // too many jobs wait
	heavy         // the jobs that run and wait take too much memory
	stopped
)

// submit runs a job now or later, or returns why it does not. If too many jobs wait, one job is refused: the last job
// of the caller who has the most waiting jobs. This can be the new job.
func (p *pool) submit(j job) fate {
	j.caller = messages.Participant(j.caller)
	p.mu.Lock()
	defer p.mu.Unlock()
	if j.size <= p.small {
		j.size = 0 // small requests do not count here, because the number of waiting jobs already bounds their memory
	}
	switch {
	case p.closed:
		return stopped
	case j.size > 0 && p.heldBy[j.caller]+j.size > p.memory-p.held:
		return heavy
	case p.queues[j.caller] == nil && p.mayStart(j.caller):
		p.hold(j.caller, j.size)
		p.start(j.caller)
		go p.work(j)
		return accepted
	}
	q := p.queues[j.caller]
	if p.waiting >= p.room {
		most := p.longest()
		if most == nil || q != nil && len(q.jobs) >= len(most.jobs) || len(most.jobs) == 1 {
			return full
		}
		last := len(most.jobs) - 1
		go most.jobs[last].refuse() // without the lock, because sending the refusal may block
		p.hold(most.caller, -most.jobs[last].size)
		most.jobs[last] = job{}
		most.jobs = most.jobs[:last]
		p.waiting--
	}
	if q == nil {
		q = &queue{caller: j.caller}
		p.queues[j.caller] = q
		p.turns = append(p.turns, q)
	}
	q.jobs = append(q.jobs, j)
	p.waiting++
	p.hold(j.caller, j.size)
	return accepted
}

// longest returns the queue with the most waiting jobs; nil if no job waits.
func (p *pool) longest() (most *queue) {
	for _, q := range p.turns {
		if most == nil || len(q.jobs) > len(most.jobs) {
			most = q
		}
	}
	return most
}

// mayStart reports whether a caller may start a further job. The caller of this method holds p.mu.
func (p *pool) mayStart(caller messages.Name) bool { return p.of[caller] < p.limit-p.running }

func (p *pool) start(caller messages.Name) {
	p.running++
	p.of[caller]++
}

// hold counts bytes of a caller's requests. The caller of this method holds p.mu.
func (p *pool) hold(caller messages.Name, bytes int) {
	p.held += bytes
	if p.heldBy[caller] += bytes; p.heldBy[caller] == 0 {
		delete(p.heldBy, caller)
	}
}

func (p *pool) work(j job) {
	for more := true; more; {
		j.run()
		j, more = p.after(j)
	}
}

// after counts the end of a job, and returns the job that starts in its place. If there is none, it returns false, and
// the worker ends.
func (p *pool) after(ended job) (first job, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold(ended.caller, -ended.size)
	p.running--
	if p.of[ended.caller]--; p.of[ended.caller] == 0 {
		delete(p.of, ended.caller)
	}
	if first, more = p.next(); !more {
		if p.closed && p.running == 0 {
			close(p.idle)
		}
		return first, false
	}
	// The end of one job can let two jobs start. The first is of another caller. The second is of the caller whose job
	// ended.
	for second, also := p.next(); also; second, also = p.next() {
		go p.work(second)
	}
	return first, true
}

// The callers stand in the order of their turns. next finds the first caller who may start a job. It takes the oldest
// job of this caller, and counts it as running. It returns false if no caller may start one. next skips only callers
// who already have running jobs, so the search is short. The caller of this method holds p.mu.
func (p *pool) next() (j job, more bool) {
	i := slices.IndexFunc(p.turns, func(q *queue) bool { return p.mayStart(q.caller) })
	if i < 0 {
		return job{}, false
	}
	q := p.turns[i]
	if i == 0 { // the usual case, without copying
		p.turns[0] = nil
		p.turns = p.turns[1:]
	} else {
		p.turns = slices.Delete(p.turns, i, i+1)
	}
	j = q.jobs[0]
	q.jobs[0] = job{}
	q.jobs = q.jobs[1:]
	p.waiting--
	if len(q.jobs) > 0 {
		p.turns = append(p.turns, q)
	} else {
		delete(p.queues, q.caller)
	}
	p.start(j.caller)
	return j, true
}

// close refuses further jobs, and returns at once. The channel p.idle is closed when the accepted jobs have ended.
func (p *pool) close() {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.closing)
		if p.running == 0 {
			close(p.idle)
		}
	}
	p.mu.Unlock()
}

// waitFor waits until `done` is closed, but not longer than the time `within`. It reports whether `done` was closed.
func waitFor(done <-chan struct{}, within time.Duration) bool {
	select {
	case <-done:
		return true
	case <-time.After(within):
		return false
	}
}
