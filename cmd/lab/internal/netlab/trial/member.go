package trial

import (
	"context"
	"fmt"
	"time"

	"github.com/candor-grid/candor/cmd/lab/internal/netlab"
	"github.com/candor-grid/candor/cmd/lab/internal/netlab/load"
	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
)

type member struct {
	*netlab.Site
	trial    *trial
	operator bus.Bus
	load     *load.Load
	result   load.Result
}

// members connects to all sites that have hosts.
func (t *trial) members() (all []*member, err error) {
	for _, s := range t.Lab.Sites {
		if len(s.Racks) == 0 {
			continue
		}
		operator, err := s.Connect(netlab.Operator)
		if err != nil {
			return all, err
		}
		all = append(all, &member{Site: s, trial: t, operator: operator})
	}
	return all, nil
}

func everyone(all []*member, do func(*member) error) error {
	return embedded.Each(all, func(m *member) error {
		if err := do(m); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		return nil
	})
}

func ask[Reply any](ctx context.Context, m *member, actor, verb string, request any) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return bus.Call[Reply](ctx, m.operator, messages.Subject(m.Name, actor, verb, netlab.Operator), request)
}

func (m *member) jobs(ctx context.Context) (map[messages.JobID]job.JobSummary, error) {
	return load.Jobs(ctx, m.operator, m.Name, netlab.Operator)
}

func (m *member) begin(ctx context.Context, c load.Config) (err error) {
	c.Site, c.Connect, c.Patience = m.Name, m.Connect, patience
	m.load, err = load.Start(ctx, c)
	return err
}

// within calls the function `look` again and again until it returns nil. When the time `d` is over, it returns the last
// error.
func within(ctx context.Context, d time.Duration, look func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return netlab.Until(ctx, look)
}

// settle waits until every job of the site has ended.
func (m *member) settle(ctx context.Context) error {
	return within(ctx, finishWithin, func(ctx context.Context) error {
		active, err := ask[job.JobsReply](ctx, m, messages.Auctioneer, messages.VerbJobs, job.JobsRequest{All: true, Active: true, Limit: 1})
		if err == nil && len(active.Jobs) > 0 {
			err = fmt.Errorf("jobs of %s are still active, such as %+v", m.Name, active.Jobs)
		}
		return err
	})
}

// calm waits until every open request is answered, and every client has an answer to a later request.
func (m *member) calm(ctx context.Context) error {
	now := time.Now()
	if err := m.load.AwaitAnswered(ctx, now); err != nil {
		return err
	}
	_, err := m.load.AwaitServed(ctx, now)
	return err
}

func (m *member) leads(ctx context.Context, actor string) (*netlab.Host, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return m.Leader(ctx, m.operator, actor)
}

func (m *member) reportLoad() {
	t, answers := m.trial, []time.Duration{}
	for _, a := range m.result.Acks {
		answers = append(answers, a.Waited())
	}
	t.times("answer to a submission", answers)
	t.count("submitted", m.result.Sent)
	t.count("given up", len(m.result.Failed))
	t.add("memory of all hosts", float64(t.Memory()>>20), "MiB")
	m.givenUp()
}

// The load gives up requests that get no answer for too long. givenUp reports each of them as a promise that the site
// broke.
func (m *member) givenUp() {
	var sentences []string
	for _, err := range m.result.Failed {
		sentences = append(sentences, err.Error())
	}
	m.trial.breaksEach(sentences)
}
