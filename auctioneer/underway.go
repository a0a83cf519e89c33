package auctioneer

import (
	"sync"

	"github.com/candor-grid/candor/messages"
)

// Tasks send requests through the agents of their nodes. Such a request can wait for a long time. Each kind of request
// has a service of its own, so it never delays the exchanges in which agents renew the leases of their nodes. These
// numbers bound how many such requests are answered at the same time.
const (
	mostSteps     = 4096 // streams of steps, for the whole site
	mostStepsOf   = 2048 // for one account
	mostProxied   = 4096 // other requests of tasks
	mostProxiedOf = 256  // more than mostWaitsOf: while some tasks wait for jobs, others can submit
)

// underway counts, for each account, the requests of its tasks that have not been answered yet. The users of another
// site count as one account, because that site could give them any number of names.
type underway struct {
	mu sync.Mutex
	of map[messages.Name]int
}

// enter counts a request, and refuses it if the account has too many. The caller calls leave after the answer.
func (u *underway) enter(account messages.Name, most int) (leave func(), err error) {
	account = messages.Participant(account)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of[account] >= most {
		return nil, messages.Errorf(messages.Unavailable, "tasks of %s have %d requests at the same time, which is the limit; ask again later", account, most)
	}
	if u.of == nil {
		u.of = map[messages.Name]int{}
	}
	u.of[account]++
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.of[account]--; u.of[account] == 0 {
			delete(u.of, account)
		}
	}, nil
}
