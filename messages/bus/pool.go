package bus

import (
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
)

// stopTimeout bounds how long Stop and Close wait for running handlers.
const stopTimeout = 5 * time.Second

// pool runs a bounded number of jobs at the same time, and lets a bounded number of jobs wait. The jobs of one caller
// run in order. Callers take turns, so a caller with many jobs does not delay other callers. An idle pool has no
// goroutine.
type pool struct {
	limit, room int

	mu      sync.Mutex
	running int
	waiting int
	queues  map[messages.Name]*queue
	turns   []*queue // queues with jobs, in the order of their turns
	closed  bool
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
	run, refuse func()
}

func newPool(limit, room int) *pool {
	return &pool{limit: limit, room: room, queues: map[messages.Name]*queue{}, idle: make(chan struct{})}
}

// fate is what submit did with a job.
type fate uint8

const (
	accepted fate = iota
	full
	stopped
)

// submit runs a job now or later, or returns why it does not. If too many jobs wait, it refuses the last job of the
// caller with the most waiting jobs, perhaps the new job.
func (p *pool) submit(j job) fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return stopped
	case p.running < p.limit:
		p.running++
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

func (p *pool) work(j job) {
	for more := true; more; {
		j.run()
		j, more = p.next()
	}
}

// Callers take turns. next returns the oldest job of the caller whose turn it is. If no job waits, it returns false,
// and the worker ends.
func (p *pool) next() (j job, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.turns) == 0 {
		p.running--
		if p.closed && p.running == 0 {
			close(p.idle)
		}
		return job{}, false
	}
	q := p.turns[0]
	p.turns[0] = nil
	p.turns = p.turns[1:]
	j = q.jobs[0]
	q.jobs[0] = job{}
	q.jobs = q.jobs[1:]
	p.waiting--
	if len(q.jobs) > 0 {
		p.turns = append(p.turns, q)
	} else {
		delete(p.queues, q.caller)
	}
	return j, true
}

// close refuses further jobs, and returns at once. The channel p.idle is closed when the accepted jobs have ended.
func (p *pool) close() {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
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
