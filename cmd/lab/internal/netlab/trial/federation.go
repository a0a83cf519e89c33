package trial

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/candor-grid/candor/cmd/lab/internal/netlab"
	"github.com/candor-grid/candor/cmd/lab/internal/netlab/load"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
)

const (
	oneWay    = 30 * time.Millisecond // a round trip between two sites takes 60 ms
	peerLimit = 10_000 * messages.Credit
	// jobsEach is the number of jobs from the users of a site. A third of these jobs go to the other sites, to each
	// other site in turn.
	jobsEach      = 500
	jobsEachShort = 60
)

func joined(l *netlab.Lab) error { return l.Join(oneWay, peerLimit) }

// roaming returns the jobs that a site's users submit. Every third job is for one of the other sites.
func roaming(home messages.Name) func(n int) job.SubmitRequest {
	return roamingTo(slices.DeleteFunc(slices.Clone(siteNames), func(name messages.Name) bool { return name == home }))
}

// roamingTo returns the jobs that users submit. Every third job is for one of the given sites, in turn.
func roamingTo(others []messages.Name) func(n int) job.SubmitRequest {
	return func(n int) job.SubmitRequest {
		r := quick(n)
		if n%3 == 2 {
			r.Site = others[n/3%len(others)]
		}
		return r
	}
}

// federation lets the users of three sites submit jobs, a third of them to the other sites. Then it compares all
// records about these jobs.
func federation(ctx context.Context, t *trial, all []*member) error {
	jobs := either(t, jobsEach, jobsEachShort) / len(federated)
	began := time.Now()
	if err := everyone(all, func(m *member) error {
		if err := m.begin(ctx, load.Config{Users: federated, Job: roaming(m.Name), Every: 250 * time.Millisecond, Jobs: jobs, Prefix: "federation"}); err != nil {
			return err
		}
		m.result = m.load.Wait()
		return nil
	}); err != nil {
		return err
	}
	t.log("all jobs are submitted")
	if err := everyone(all, func(m *member) error { return m.settle(ctx) }); err != nil {
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

// awaitLinks waits until every bank has an answer from every other bank.
func (t *trial) awaitLinks(ctx context.Context, all []*member) error {
	began := time.Now()
	err := everyone(all, func(m *member) error {
		for _, other := range all {
			if other == m {
				continue
			}
			if _, err := ask[clearing.ReconcileReply](ctx, m, messages.Bank, clearing.VerbReconcile, clearing.ReconcileRequest{Peer: other.Name}); err != nil {
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
