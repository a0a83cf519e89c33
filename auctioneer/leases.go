package auctioneer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// leases remembers when the leader last heard of each node, by the monotonic
// clock: a wall clock that is set must not cost anybody's tasks. A node it has
// not heard of yet in its term counts from when it began to lead: whatever an
// earlier leader answered was answered before.
type leases struct {
	mu    sync.Mutex
	began time.Time
	heard map[messages.Name]time.Time
}

func newLeases() *leases {
	return &leases{began: time.Now(), heard: map[messages.Name]time.Time{}}
}

func (s *leases) renew(node messages.Name, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.After(s.heard[node]) {
		s.heard[node] = at
	}
}

// silence is how long nothing was heard of a node.
func (s *leases) silence(node messages.Name) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.heard[node]; ok {
		return time.Since(at)
	}
	return time.Since(s.began)
}

// watchLeases takes back the claims of nodes that fell silent. It waits half a
// lease longer than agents do, so that they have stopped their tasks before.
func (l *leader) watchLeases(ctx context.Context) {
	defer l.metrics.quarantined.Set(0) // the next leader counts
	defer l.metrics.unserved.Set(0)
	for sleep(ctx, min(l.Lease.Std()/8, time.Second)) {
		l.evict(ctx)
		l.replica.read(l.countQuarantined)
		var silent []*book.Lost
		l.replica.read(func(b *book.Book) {
			for _, n := range b.Nodes() {
				if n.Up && l.leases.silence(n.Name) > (l.Lease+l.Lease/2).Std() {
					silent = append(silent, &book.Lost{Node: n.Name, Session: n.Session})
				}
			}
		})
		for _, lost := range silent {
			back, err := l.propose(ctx, &book.Command{Lost: lost})
			l.Log.Warn("node lost", zap.String("node", lost.Node), zap.Any("tasks", back), zap.Error(err))
			l.metrics.nodesLost.Inc()
		}
	}
}

// extendHolds keeps the bank from freeing the holds of jobs that live: each
// quarter of HoldFor it extends those of jobs that are older than that, the
// first time as soon as it leads, as the last leader may have been about to. Where
// the bank did not answer it tries again soon.
func (l *leader) extendHolds(ctx context.Context) {
	for wait := time.Duration(0); sleep(ctx, wait); {
		wait = l.HoldFor.Std() / 4
		if err := l.extendAll(ctx); err != nil {
			l.Log.Warn("holds not extended", zap.Error(err))
			wait = min(wait, max(wait/16, time.Second))
		}
	}
}

// extendAll extends the holds of all jobs; the error is of some that were not.
func (l *leader) extendAll(ctx context.Context) (failed error) {
	now := l.Clock()
	var extensions []messages.Transfer
	l.replica.read(func(b *book.Book) {
		for j := range b.Jobs {
			if hold := j.HoldID(); !j.Settled && hold != "" && now.Sub(j.Submitted) > l.HoldFor/4 {
				extensions = append(extensions, extension(hold, j.ID, now.Add(l.HoldFor), "the job has not ended"))
			}
		}
	})
	for some := range slices.Chunk(extensions, transfersAtOnce) {
		results, err := l.transferEach(ctx, some, false)
		if err != nil {
			failed = err
			continue
		}
		for i, r := range results { // the job may have been settled meanwhile
			if r.Error != nil {
				l.Log.Warn("a hold was not extended", zap.Stringer("job", some[i].Job), zap.Error(r.Error))
			}
		}
	}
	return failed
}

// extension moves a hold's expiry to a time, under an identifier of its own.
func extension(hold string, job messages.JobID, until messages.Time, why string) messages.Transfer {
	return messages.Transfer{
		ID: fmt.Sprintf("%s/until/%d", hold, until), Kind: messages.Extend, Pending: hold, Expires: until, Job: job, Reason: why,
	}
}
