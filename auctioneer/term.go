package auctioneer

import (
	"bytes"
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// term is what the handlers of requests use while this replica leads: the site, the desk, and the requests that wait
// for news of jobs at other sites.
type term struct {
	*site
	number    uint64
	life      context.Context // ends with the term
	federated *federated
	markets   atomic.Pointer[desk.Markets]

	mu           sync.Mutex // guards the fields below
	desk         *desk.Desk
	stepped      chan struct{} // closed by the next step that may have decided about waiting claims
	reconfigured chan struct{} // closed when other markets come into force
}

// verify returns an error unless three things are true: this replica leads, it has the state that the replicas agreed
// on, and the term is still the term of this desk. The last check is needed because the replica may have lost the
// leadership and won it again. Another leader has then made decisions that this desk does not know.
func (l *term) verify(ctx context.Context) error {
	if err := l.site.verify(ctx); err != nil {
		return err
	}
	return l.inTerm(l.number)
}

// The method `with` calls f with the desk. No step of the desk runs at the same time.
func (l *term) with(f func(*desk.Desk)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l.desk)
}

// withMarket calls f with a market. No step of the desk runs at the same time. If the market has been removed,
// withMarket returns an error that makes the sender repeat the request.
func (l *term) withMarket(name messages.Name, f func(*market.Market) error) (err error) {
	l.with(func(d *desk.Desk) {
		if m := d.Market(name); m != nil {
			err = f(m)
		} else {
			err = messages.Errorf(messages.NotLeader, "the markets have just been changed; ask again")
		}
	})
	return err
}

// takeIntoForce makes the term use the markets in `m` for all further requests. It logs the errors of markets that
// cannot run.
func (l *term) takeIntoForce(m *desk.Markets, faults []error) {
	for _, err := range faults {
		l.Log.Error("a market cannot run", zap.Error(err))
	}
	l.markets.Store(m)
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.reconfigured)
	l.reconfigured = make(chan struct{})
}

// nextMarkets returns a channel that is closed when the set of markets in force changes next.
func (l *term) nextMarkets() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reconfigured
}

// inForce returns the markets in force. The markets can change at any time, so the handler of a request must call
// inForce only once.
func (l *term) inForce() *desk.Markets { return l.markets.Load() }

// inForceWithin is the longest time until markets that were just applied are in force.
const inForceWithin = time.Second

// answered returns a new handler, which calls `handle`. While `handle` checks a request, an operator may apply other
// markets, and the request is refused for this reason. Then the new handler calls `handle` again. Before any other
// refusal, the new handler checks that this replica still leads: a replica that was replaced as leader lacks the latest
// jobs.
func (l *term) answered(handle bus.Handler) bus.Handler {
	return func(ctx context.Context, r bus.Request) ([]byte, error) {
		for {
			next := l.nextMarkets()
			reply, err := handle(ctx, r)
			if err == nil || messages.KindOf(err) != messages.NotLeader {
				if err != nil && !messages.Waits(err) {
					err = cmp.Or(l.verify(ctx), err)
				}
				return reply, err
			}
			select {
			case <-next:
			case <-l.life.Done():
				return reply, err
			case <-ctx.Done():
				return reply, err
			case <-time.After(inForceWithin):
				return reply, err
			}
		}
	}
}

// After a restore, the numbers of jobs that were submitted after the backup must not be used again. So numbers are
// skipped: at least leastLeftOut, and leftOutPerSecond for each second since the backup. No site submits that many jobs
// in a second.
const (
	leastLeftOut     = 1_000_000
	leftOutPerSecond = 1000
)

// renumber is called before the first request after a restore, and skips job numbers. Jobs that were submitted after
// the backup are lost here, but peers still know them by their numbers. So no new job may get such a number.
func (l *term) renumber() error {
	var backup messages.Time
	var last messages.JobID
	l.replica.read(func(b *book.Book) { backup, last = b.Backup(), b.LastJob() })
	if l.Restored <= backup {
		return nil
	}
	last += leastLeftOut + messages.JobID(max(0, l.Clock().Sub(l.Restored))/messages.Duration(time.Second))*leftOutPerSecond
	l.Log.Warn("a backup was restored: jobs get higher numbers from now on", zap.Time("backup", l.Restored.Std()), zap.Uint64("after", uint64(last)))
	_, err := l.propose(l.life, &book.Command{Restored: &book.Restored{Backup: l.Restored, Last: last}})
	return err
}

func (l *term) setLicenses() error {
	same := false
	l.replica.read(func(b *book.Book) { same = slices.Equal(b.TotalLicenses(), l.Licenses) })
	if same {
		return nil
	}
	_, err := l.propose(l.life, &book.Command{SetLicenses: &book.SetLicenses{Totals: l.Licenses}})
	return err
}

func (l *term) setBounds() error {
	same, bounds := false, book.BoundsOf(l.inForce().Configs)
	l.replica.read(func(b *book.Book) { same = reflect.DeepEqual(b.Bounds(), bounds) })
	if same {
		return nil
	}
	_, err := l.propose(l.life, &book.Command{SetBounds: &book.SetBounds{Markets: bounds}})
	return err
}

func (l *term) rules() *intake.Rules {
	r := &intake.Rules{Markets: l.inForce(), Site: l.Site, Operators: l.Operators, MostMemory: l.MostMemory,
		Deposit: l.Limits.Deposit, Pending: l.Limits.PendingJobs, Notify: l.NotifyRules.Check, Earlier: l.replica.level.Load() < 2}
	if l.Filter != nil {
		r.Filter = l.filter
	}
	return r
}

// filter asks the site's filter program about a new job. If the job comes from another site, the program may refuse the
// job, but may not change it, because the two sites have agreed on the cost.
func (l *term) filter(s *intake.Submission) (said []string, err error) {
	known := false
	if l.replica.read(func(b *book.Book) {
		p := b.Entered(s.Account, s.Key)
		known = p != nil && bytes.Equal(p.Digest, s.Digest)
	}); known {
		return nil, nil
	}
	spec, changes, err := l.Filter.Ask(l.life, s.Account, s.Key+" "+string(s.Digest), s.Spec)
	switch {
	case err != nil:
		if messages.KindOf(err) == messages.Internal {
			l.Log.Error("the filter for submissions fails", zap.Error(err))
		}
		return nil, err
	case len(changes) == 0:
		return nil, nil
	case messages.Participant(s.Account) != s.Account:
		return nil, messages.Errorf(messages.PermissionDenied, "the site's rules for jobs would change the job (%s), and this site does not change jobs of other sites; submit the job with these changes, or to another site", strings.Join(changes, "; "))
	}
	*s.Spec = *spec
	return []string{"the site changed the job: " + strings.Join(changes, "; ")}, nil
}

type inbox struct {
	mu      sync.Mutex
	waiting []desk.Input
}

func (i *inbox) add(in ...desk.Input) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.waiting = append(i.waiting, in...)
}

func (i *inbox) drain() []desk.Input {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := i.waiting
	i.waiting = nil
	return all
}
