package auctioneer

import (
	"sync"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// These limits bound how many requests wait for the end of a job at the same time. A request above a limit is answered
// at once, as if it did not ask to wait.
const (
	mostWaits   = 1024 // requests that wait, for the whole site
	mostWaitsOf = 64   // requests that wait, for one account
)

// endings holds the requests that wait for jobs to end.
type endings struct {
	mu   sync.Mutex
	all  int
	of   map[messages.Name]int // by account: number of requests that wait
	jobs map[messages.JobID]*awaited
}

type awaited struct {
	by    int
	ended chan struct{}
}

// enter counts a request that waits for the end of a job. The caller calls leave when it stops waiting. The channel
// `ended` is closed when the job ends. If too many requests wait already, `ended` is nil.
func (e *endings) enter(caller messages.Name, id messages.JobID) (ended <-chan struct{}, leave func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all >= mostWaits || e.of[caller] >= mostWaitsOf {
		return nil, func() {}
	}
	if e.jobs == nil {
		e.of, e.jobs = map[messages.Name]int{}, map[messages.JobID]*awaited{}
	}
	w := e.jobs[id]
	if w == nil {
		w = &awaited{ended: make(chan struct{})}
		e.jobs[id] = w
	}
	w.by++
	e.of[caller]++
	e.all++
	return w.ended, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.all--
		if e.of[caller]--; e.of[caller] == 0 {
			delete(e.of, caller)
		}
		if w.by--; w.by == 0 && e.jobs[id] == w {
			delete(e.jobs, id)
		}
	}
}

// changed wakes the requests that wait for one of these jobs, if the job has ended.
func (e *endings) changed(b *book.Book, ids []messages.JobID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == 0 {
		return
	}
	for _, id := range ids {
		if w := e.jobs[id]; w != nil && !unfinished(b, id) {
			close(w.ended)
			delete(e.jobs, id)
		}
	}
}

func unfinished(b *book.Book, id messages.JobID) bool {
	if j := b.Job(id); j != nil {
		return !j.State.Final()
	}
	r := b.Remote(id)
	return r != nil && !r.Summary().State.Final()
}
