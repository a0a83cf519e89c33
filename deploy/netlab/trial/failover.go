package trial

import (
	"context"
	"time"

	"github.com/candor-grid/candor/deploy/netlab"
	"github.com/candor-grid/candor/deploy/netlab/load"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// How often a trial strikes: each victim a third of it.
const (
	blows      = 21
	blowsShort = 3
)

// victims are who is struck, in turn: what the host leads, or nothing of either.
var victims = []string{messages.Auctioneer, messages.Bank, "server"}

// blow is what befalls a host.
type blow struct {
	name   string // in the report
	strike func(*netlab.Host) error
	mend   func(context.Context, *netlab.Host) error
}

// failover kills hosts under load. A client is served again when it is answered a
// request that it sent after the death.
func failover(ctx context.Context, t *trial) error {
	return t.strikes(ctx, blow{
		name:   "killed",
		strike: func(h *netlab.Host) error { h.Kill(); return nil },
		mend:   revive,
	})
}

// isolation takes hosts off the network of their site under load: nobody is told, as
// a process that dies has its connections closed for it.
func isolation(ctx context.Context, t *trial) error {
	return t.strikes(ctx, blow{
		name:   "isolated",
		strike: (*netlab.Host).Cut,
		mend:   func(_ context.Context, h *netlab.Host) error { return h.Heal() },
	})
}

// strikes strikes the hosts of a site under load, and wants nothing to be lost.
func (t *trial) strikes(ctx context.Context, b blow) error {
	s := t.Lab.Sites[0]
	operator, err := s.Connect(netlab.Operator)
	if err != nil {
		return err
	}
	defer operator.Close()
	l, err := load.Start(ctx, load.Config{Site: s.Name, Users: users, Connect: s.Connect, Job: quick,
		Every: 100 * time.Millisecond, Patience: patience, Prefix: t.Scenario})
	if err != nil {
		return err
	}
	n := blows
	if t.Short {
		n = blowsShort
	}
	waits, err := t.strikeInTurn(ctx, b, s, operator, l, n)
	result := l.Stop()
	if err != nil {
		return err
	}
	t.reportWaits(b, waits, n)
	t.reportLoad(&result)
	if err := t.checkWork(ctx, s, operator, l, result.Acks); err != nil {
		return err
	}
	return t.checkBooks(ctx, s, operator)
}

// strikeInTurn strikes one victim after another, each when the one before is back and
// nobody waits for an answer because of it, and returns how long clients were not
// served, by victim.
func (t *trial) strikeInTurn(ctx context.Context, b blow, s *netlab.Site, operator bus.Bus, l *load.Load, n int) (map[string][]time.Duration, error) {
	waits := map[string][]time.Duration{}
	for i := range n {
		what := victims[i%len(victims)]
		if err := t.calm(ctx, l); err != nil {
			return nil, err
		}
		h, err := t.victim(ctx, s, operator, what)
		if err != nil {
			return nil, err
		}
		began := time.Now()
		if err := b.strike(h); err != nil {
			return nil, err
		}
		served, err := t.awaitServed(ctx, l, began)
		if err != nil {
			return nil, err
		}
		t.log("%2d of %d: %s (%s) %s; clients served again after %v", i+1, n, h.Name, what, b.name, rounded(served))
		waits[what] = append(waits[what], served...)
		if err := b.mend(ctx, h); err != nil {
			return nil, err
		}
	}
	return waits, nil
}

func (t *trial) awaitServed(ctx context.Context, l *load.Load, after time.Time) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return l.AwaitServed(ctx, after)
}

// awaitMore waits for further answers to submissions.
func (t *trial) awaitMore(ctx context.Context, l *load.Load, n int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return l.AwaitMore(ctx, n)
}

// calm waits until all is well: until every request that is under way is answered,
// and every client is served.
func (t *trial) calm(ctx context.Context, l *load.Load) error {
	now := time.Now()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := l.AwaitAnswered(ctx, now); err != nil {
		return err
	}
	_, err := l.AwaitServed(ctx, now)
	return err
}

// revive starts a host again and waits until it serves.
func revive(ctx context.Context, h *netlab.Host) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	if err := h.Start(); err != nil {
		return err
	}
	return h.Await(ctx)
}

// victim is the host that leads an actor; for a server, one that leads neither if
// there is one.
func (t *trial) victim(ctx context.Context, s *netlab.Site, operator bus.Bus, what string) (*netlab.Host, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	auctioneer, err := s.Leader(ctx, operator, messages.Auctioneer)
	if err != nil {
		return nil, err
	}
	bank, err := s.Leader(ctx, operator, messages.Bank)
	if err != nil {
		return nil, err
	}
	switch what {
	case messages.Auctioneer:
		return auctioneer, nil
	case messages.Bank:
		return bank, nil
	}
	for _, h := range s.Racks {
		if h != auctioneer && h != bank {
			return h, nil
		}
	}
	return auctioneer, nil
}

func rounded(all []time.Duration) []time.Duration {
	out := make([]time.Duration, 0, len(all))
	for _, d := range all {
		out = append(out, d.Round(time.Millisecond))
	}
	return out
}

// titles are how the victims are called in the report.
var titles = map[string]string{
	messages.Auctioneer: "auctioneer's leader ",
	messages.Bank:       "bank's leader ",
	"server":            "server without leaders ",
}

func (t *trial) reportWaits(b blow, waits map[string][]time.Duration, n int) {
	var all []time.Duration
	for _, what := range victims {
		all = append(all, waits[what]...)
	}
	t.count("hosts "+b.name, n)
	t.times("until a client is served again", all)
	for _, what := range victims {
		t.times(titles[what]+b.name, waits[what])
	}
}

// reportLoad says what became of the submissions of a load. None may be given up.
func (t *trial) reportLoad(result *load.Result) {
	var answers []time.Duration
	for _, a := range result.Acks {
		answers = append(answers, a.Waited())
	}
	t.times("answer to a submission", answers)
	t.count("submitted", result.Sent)
	t.count("given up", len(result.Failed))
	t.add("memory of all hosts", float64(t.Memory()>>20), "MiB")
	t.given(result)
}

// given notes the requests that were given up.
func (t *trial) given(result *load.Result) {
	var sentences []string
	for _, err := range result.Failed {
		sentences = append(sentences, err.Error())
	}
	t.breaksEach(sentences)
}
