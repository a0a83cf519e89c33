package trial

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/candor-grid/candor/deploy/netlab"
	"github.com/candor-grid/candor/deploy/netlab/load"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// What the sites of a federation are like.
const (
	oneWay    = 30 * time.Millisecond // a round trip between two sites takes 60 ms
	peerLimit = 10_000 * messages.Credit
	// jobsEach is how many jobs the users of a site submit; a third of them is for
	// the other sites, by turns.
	jobsEach      = 500
	jobsEachShort = 60
)

// siteNames are the sites of a federation.
var siteNames = []messages.Name{"west", "east", "north"}

// threeSites are peers, of which each has users who are called the same.
func threeSites(bool) (plans []netlab.Plan) {
	for _, name := range siteNames {
		p := plan(name)
		p.Users = append(p.Users, "dave", "erin")
		plans = append(plans, p)
	}
	return plans
}

// joined makes the sites of a lab peers.
func joined(l *netlab.Lab) error { return l.Join(oneWay, peerLimit) }

// member is a site of a federation in a trial.
type member struct {
	*netlab.Site
	operator bus.Bus
	load     *load.Load
	result   load.Result
}

// ask sends a request to an actor of the site as its operator.
func ask[Reply any](ctx context.Context, m *member, actor, verb string, request any) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return bus.Call[Reply](ctx, m.operator, messages.Subject(m.Name, actor, verb, netlab.Operator), request)
}

// members connects to all sites, and waits until every bank hears every other. end
// closes the connections.
func (t *trial) members(ctx context.Context) (all []*member, end func(), err error) {
	end = func() {
		for _, m := range all {
			_ = m.operator.Close()
		}
	}
	for _, s := range t.Lab.Sites {
		operator, err := s.Connect(netlab.Operator)
		if err != nil {
			end()
			return nil, nil, err
		}
		all = append(all, &member{Site: s, operator: operator})
	}
	if err := t.awaitLinks(ctx, all); err != nil {
		end()
		return nil, nil, err
	}
	return all, end, nil
}

// everyone does something with all members at a time.
func everyone(all []*member, do func(*member) error) error {
	failed := make([]error, len(all))
	var busy sync.WaitGroup
	for i, m := range all {
		busy.Go(func() { failed[i] = do(m) })
	}
	busy.Wait()
	for i, err := range failed {
		if err != nil {
			return fmt.Errorf("%s: %w", all[i].Name, err)
		}
	}
	return nil
}

// roaming is what a site's users submit: every third job is for one of the other
// sites.
func roaming(home messages.Name) func(n int) messages.SubmitRequest {
	var others []messages.Name
	for _, name := range siteNames {
		if name != home {
			others = append(others, name)
		}
	}
	return func(n int) messages.SubmitRequest {
		r := quick(n)
		if n%3 == 2 {
			r.Site = others[n/3%len(others)]
		}
		return r
	}
}

// begin has the users of a site submit.
func (m *member) begin(ctx context.Context, prefix string, every time.Duration, jobs int) (err error) {
	m.load, err = load.Start(ctx, load.Config{Site: m.Name, Users: federated, Connect: m.Connect, Job: roaming(m.Name),
		Every: every, Jobs: jobs, Patience: patience, Prefix: prefix})
	return err
}

// federated are the users of each site.
var federated = append(users[:len(users):len(users)], "dave", "erin")

// federation has the users of three sites submit, a third of it to the other sites,
// and compares everything that was written down about it.
func federation(ctx context.Context, t *trial) error {
	all, end, err := t.members(ctx)
	if err != nil {
		return err
	}
	defer end()
	jobs := jobsEach
	if t.Short {
		jobs = jobsEachShort
	}
	began := time.Now()
	if err := everyone(all, func(m *member) error {
		if err := m.begin(ctx, "federation", 250*time.Millisecond, jobs/len(federated)); err != nil {
			return err
		}
		m.result = m.load.Wait()
		return nil
	}); err != nil {
		return err
	}
	t.log("all jobs are submitted")
	if err := everyone(all, func(m *member) error { _, err := t.settle(ctx, m.Site, m.operator); return err }); err != nil {
		return err
	}
	t.add("all jobs submitted and ended", time.Since(began).Seconds(), "s")
	t.add("memory of all hosts", float64(t.Memory()>>20), "MiB")
	ended := time.Now()
	if err := t.agree(ctx, all); err != nil {
		return err
	}
	t.time("from then until all books and statements agree", time.Since(ended))
	return t.compare(ctx, all)
}

// awaitLinks waits until every bank hears every other.
func (t *trial) awaitLinks(ctx context.Context, all []*member) error {
	began := time.Now()
	err := everyone(all, func(m *member) error {
		for _, other := range all {
			if other == m {
				continue
			}
			if _, err := ask[messages.ReconcileReply](ctx, m, messages.Bank, messages.VerbReconcile, messages.ReconcileRequest{Peer: other.Name}); err != nil {
				return fmt.Errorf("peer %s: %w", other.Name, err)
			}
		}
		return nil
	})
	if err == nil {
		t.log("every bank hears every other")
		t.time("until every bank hears every other", time.Since(began))
	}
	return err
}
