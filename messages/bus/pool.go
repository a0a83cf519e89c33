package bus

import (
	"sync"
	"time"
)

// stopTimeout bounds how long Stop and Close wait for handlers that run.
const stopTimeout = 5 * time.Second

// pool runs jobs, a bounded number at once, and lets a bounded number wait in
// order. It keeps no goroutine while there is nothing to do.
type pool struct {
	limit, queue int

	mu      sync.Mutex
	running int
	waiting []func()
	closed  bool
	idle    chan struct{} // closed once closed is set and nothing runs
}

func newPool(limit, queue int) *pool {
	return &pool{limit: limit, queue: queue, idle: make(chan struct{})}
}

// fate is what became of a submitted job.
type fate uint8

const (
	accepted fate = iota
	full
	stopped
)

// submit runs job now or later, or says why it never will.
func (p *pool) submit(job func()) fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return stopped
	case p.running < p.limit:
		p.running++
		go p.work(job)
	case len(p.waiting) < p.queue:
		p.waiting = append(p.waiting, job)
	default:
		return full
	}
	return accepted
}

func (p *pool) work(job func()) {
	for job != nil {
		job()
		job = p.next()
	}
}

// next takes the job that has waited longest; without one the worker ends.
func (p *pool) next() func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) > 0 {
		job := p.waiting[0]
		p.waiting[0] = nil
		p.waiting = p.waiting[1:]
		return job
	}
	p.running--
	if p.closed && p.running == 0 {
		close(p.idle)
	}
	return nil
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
	default:
	}
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
