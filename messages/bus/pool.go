package bus

import (
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
)

// stopTimeout bounds how long Stop and Close wait for handlers that run.
const stopTimeout = 5 * time.Second

// pool runs jobs, a bounded number at once, and lets a bounded number wait: those
// of one caller in order, those of different callers by turns, so that whoever
// sends a flood waits for its own. It keeps no goroutine while there is nothing to do.
type pool struct {
	limit, room int

	mu      sync.Mutex
	running int
	waiting int
	queues  map[messages.Name]*queue
	turns   []*queue // those that are not empty, whose turn is next first
	closed  bool
	idle    chan struct{} // closed once closed is set and nothing runs
}

// queue is what waits of one caller.
type queue struct {
	caller messages.Name
	jobs   []job
}

// job is run, or refused; one of the two, once.
type job struct {
	caller      messages.Name
	run, refuse func()
}

func newPool(limit, room int) *pool {
	return &pool{limit: limit, room: room, queues: map[messages.Name]*queue{}, idle: make(chan struct{})}
}

// fate is what became of a submitted job.
type fate uint8

const (
	accepted fate = iota
	full
	stopped
)

// submit runs a job now or later, or says why it never will. Where too many wait,
// the last of whoever has most waiting is refused in its place, which may be itself.
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
		go most.jobs[last].refuse() // it may take its time, and the caller's order is of replies to nobody
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

// longest is the queue of whoever has most waiting; nil if nobody has.
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

// next takes the job that has waited longest of the caller whose turn it is;
// without one the worker ends.
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

// close refuses further jobs, and waits for those accepted. It reports whether
// they ended within stopTimeout.
func (p *pool) close() bool {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		if p.running == 0 {
			close(p.idle)
		}
	}
	p.mu.Unlock()
	return waitFor(p.idle)
}

// waitFor reports whether done was closed within stopTimeout.
func waitFor(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-time.After(stopTimeout):
		return false
	}
}
