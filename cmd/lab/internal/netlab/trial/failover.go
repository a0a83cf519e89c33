package trial

import (
	"context"
	"slices"
	"time"

	"github.com/candor-grid/candor/cmd/lab/internal/netlab"
	"github.com/candor-grid/candor/cmd/lab/internal/netlab/load"
	"github.com/candor-grid/candor/messages"
)

// These are the numbers of blows: failures that the trial causes. The variable `victims` has four kinds of victims, and
// each kind gets a quarter of the blows.
const (
	blows      = 20
	blowsShort = 4
	// acksBetweenBlows is the number of submissions that are acknowledged before each failure that the trial causes.
	// Without acknowledged submissions, a failure would have nothing to lose.
	acksBetweenBlows = 12
)

// victims are the hosts that the trial hits, one after another: the auctioneer's leader, the bank's leader, a host that
// leads both, and a host that leads neither.
var victims = []string{messages.Auctioneer, messages.Bank, leadsBoth, "server"}

const leadsBoth = "both"

// blow is a failure that the trial causes at a host.
type blow struct {
	name   string // name in the report
	strike func(*netlab.Host) error
	mend   func(context.Context, *netlab.Host) error
	// median and longest limit the time without service after a leader was struck. median limits the median over all
	// strikes, and longest limits the longest time. 0 means no limit.
	median, longest time.Duration
}

// These limits are for the time after a leader was killed in which clients get no answers: the median and the longest
// time over many kills.
const (
	deathMedian  = time.Second
	deathLongest = 2 * time.Second
)

// failover kills hosts under load, and measures how long it takes until clients are served again. A client is served
// again when it has an answer to a request that it sent after the kill.
func failover(ctx context.Context, _ *trial, all []*member) error {
	return all[0].strikes(ctx, blow{
		name:   "killed",
		strike: func(h *netlab.Host) error { h.Kill(); return nil },
		mend:   revive,
		median: deathMedian, longest: deathLongest,
	})
}

// stops stops hosts one after another under load, as for an upgrade. Leaders hand over their leadership.
func stops(ctx context.Context, _ *trial, all []*member) error {
	return all[0].strikes(ctx, blow{name: "stopped in order", strike: (*netlab.Host).Stop, mend: revive})
}

// standstill suspends hosts under load (SIGSTOP). It resumes them when clients are served again by the other hosts.
func standstill(ctx context.Context, _ *trial, all []*member) error {
	return all[0].strikes(ctx, blow{name: "stood still", strike: (*netlab.Host).Pause,
		mend: func(_ context.Context, h *netlab.Host) error { return h.Resume() }})
}

// isolation disconnects hosts from the network of their site under load. It closes no connection, so the other hosts
// are not told that the connections are broken.
func isolation(ctx context.Context, _ *trial, all []*member) error {
	return all[0].strikes(ctx, blow{
		name:   "isolated",
		strike: (*netlab.Host).Cut,
		mend:   func(_ context.Context, h *netlab.Host) error { return h.Heal() },
	})
}

// strikes gives blows, such as a kill, to the hosts of a site while users submit jobs. Nothing may be lost.
func (m *member) strikes(ctx context.Context, b blow) error {
	if err := m.begin(ctx, load.Config{Users: users, Job: quick, Every: 100 * time.Millisecond, Prefix: m.trial.Scenario}); err != nil {
		return err
	}
	n := either(m.trial, blows, blowsShort)
	waits, err := m.strikeInTurn(ctx, b, n)
	m.result = m.load.Stop()
	if err != nil {
		return err
	}
	m.trial.reportWaits(b, waits, n)
	if !m.trial.Short {
		m.trial.checkWaits(b, slices.Concat(waits[messages.Auctioneer], waits[messages.Bank], waits[leadsBoth]))
	}
	m.reportLoad()
	if err := m.checkWork(ctx); err != nil {
		return err
	}
	return m.checkBooks(ctx)
}

// strikeInTurn hits one victim after another. Before each blow, the host that was hit before must work again. It
// returns, for each victim, the times without service after the blows.
func (m *member) strikeInTurn(ctx context.Context, b blow, n int) (map[string][]time.Duration, error) {
	waits := map[string][]time.Duration{}
	for i := range n {
		what := victims[i%len(victims)]
		if err := m.calm(ctx); err != nil {
			return nil, err
		}
		if err := m.load.AwaitMore(ctx, acksBetweenBlows); err != nil {
			return nil, err
		}
		h, err := m.victim(ctx, what)
		if err != nil {
			return nil, err
		}
		began := time.Now()
		if err := b.strike(h); err != nil {
			return nil, err
		}
		served, err := m.load.AwaitServed(ctx, began)
		if err != nil {
			return nil, err
		}
		m.trial.log("%2d of %d: %s (%s) %s; clients served again after %v", i+1, n, h.Name, what, b.name, rounded(served))
		waits[what] = append(waits[what], served...)
		if err := b.mend(ctx, h); err != nil {
			return nil, err
		}
	}
	return waits, nil
}

func revive(ctx context.Context, h *netlab.Host) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	if err := h.Start(); err != nil {
		return err
	}
	return h.Await(ctx)
}

// victim returns the host that leads a given actor. "both" means the host that leads both actors, and "server" one that
// leads neither, if there is one.
func (m *member) victim(ctx context.Context, what string) (*netlab.Host, error) {
	auctioneer, err := m.leads(ctx, messages.Auctioneer)
	if err != nil {
		return nil, err
	}
	bank, err := m.leads(ctx, messages.Bank)
	if err != nil {
		return nil, err
	}
	switch what {
	case messages.Auctioneer:
		return auctioneer, nil
	case messages.Bank:
		return bank, nil
	case leadsBoth:
		if auctioneer == bank {
			return bank, nil
		}
		return m.united(ctx, bank)
	}
	for _, h := range m.Racks {
		if h != auctioneer && h != bank {
			return h, nil
		}
	}
	return auctioneer, nil
}

// united restarts the host that leads the bank. It repeats this with each new leader of the bank, until one host leads
// both actors.
func (m *member) united(ctx context.Context, bank *netlab.Host) (*netlab.Host, error) {
	if err := bank.Stop(); err != nil {
		return nil, err
	}
	if err := revive(ctx, bank); err != nil {
		return nil, err
	}
	if err := m.calm(ctx); err != nil {
		return nil, err
	}
	return m.victim(ctx, leadsBoth)
}

func rounded(all []time.Duration) []time.Duration {
	out := make([]time.Duration, 0, len(all))
	for _, d := range all {
		out = append(out, d.Round(time.Millisecond))
	}
	return out
}

var titles = map[string]string{
	messages.Auctioneer: "auctioneer's leader ",
	messages.Bank:       "bank's leader ",
	leadsBoth:           "leader of both ",
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

// checkWaits checks the times until clients were served again after a blow, a failure that the trial causes. A blow has
// limits for these times.
func (t *trial) checkWaits(b blow, waits []time.Duration) {
	sorted := slices.Sorted(slices.Values(waits))
	if b.longest == 0 || len(sorted) == 0 {
		return
	}
	if middle := quantile(sorted, 0.5); middle > b.median {
		t.breaks("after a leader was %s, clients were served again after a median of %v, which is more than %v", b.name, middle.Round(time.Millisecond), b.median)
	}
	if last := sorted[len(sorted)-1]; last > b.longest {
		t.breaks("after a leader was %s, a client was served again after %v, which is more than %v", b.name, last.Round(time.Millisecond), b.longest)
	}
}
