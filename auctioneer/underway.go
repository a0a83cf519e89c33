package auctioneer

import (
	"context"
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
)

// These numbers limit how many requests of tasks are answered at the same time. Tasks send requests through the agents
// of their nodes, and a request can wait for a long time. Each kind has its own service. So these requests never delay
// the exchanges in which agents renew the leases of their nodes.
const (
	mostSteps     = 4096 // requests for streams of steps, for the whole site
	mostStepsOf   = 2048 // the same, for one account
	mostProxied   = 4096 // other requests of tasks, for the whole site
	mostProxiedOf = 256  // the same, for one account
	// mostPacedOf is how many of these requests of one account are carried out at the same time. After a large answer, a
	// place stays taken, so that the answers keep their pace; meanwhile further requests wait. There are more places than
	// mostWaitsOf, so that tasks can submit while others wait for jobs.
	mostPacedOf  = 128
	longestPaced = 20 * time.Second // the longest time for which a request waits for a place
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

// wait waits until the account has fewer than `most` requests, and then counts the request. It gives up after
// longestPaced.
func (u *underway) wait(ctx context.Context, account messages.Name, most int) (leave func(), err error) {
	const look = 20 * time.Millisecond
	for end := time.Now().Add(longestPaced); ; {
		leave, err = u.enter(account, most)
		if err == nil {
			return leave, nil
		}
		if time.Now().After(end) {
			return nil, messages.Errorf(messages.Unavailable, "the answers to the tasks of %s are more than the site sends in this time; ask again later", account)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(look):
		}
	}
}
