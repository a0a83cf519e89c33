package courier

import (
	"context"
	"slices"
	"sync"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages/bus"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
)

type proposer struct {
	config  *Config
	metrics *metrics

	mu       sync.Mutex
	screened map[clearing.Refusal]uint64 // by reason: requests that were refused before they reached the log
	news     chan struct{}               // closed and replaced when there may be something to send
}

func (p *proposer) submit(ctx context.Context, command clearing.Command) (clearing.Result, error) {
	if err := p.screen(&command); err != nil {
		return clearing.Result{}, err
	}
	return p.propose(ctx, command)
}

// screen returns an error for a command that is wrong in any state of the books. Such a command never reaches the log.
func (p *proposer) screen(command *clearing.Command) error {
	return p.check(func(s *clearing.State) *clearing.Rejected { return s.Screen(command) })
}

// The function `wrong` gets the state of the clearing, and may return a refusal. check calls it, and counts the refusal
// in the metrics. A refused request does not reach the log, so it is counted only here.
func (p *proposer) check(wrong func(*clearing.State) *clearing.Rejected) error {
	var r *clearing.Rejected
	p.config.Host.Read(func(s *clearing.State) { r = wrong(s) })
	if r == nil {
		return nil
	}
	p.metrics.refused.WithLabelValues(r.Reason.String()).Inc()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.screened[r.Reason]++
	return r.Err
}

// propose commits a command that has passed the checks, and wakes the sender, because the command may cause new
// messages.
func (p *proposer) propose(ctx context.Context, command clearing.Command) (clearing.Result, error) {
	command.At, command.Asked = p.config.Clock(), bus.Asked(ctx)
	r, err := p.config.Host.Propose(ctx, command)
	if err != nil {
		return clearing.Result{}, err
	}
	p.mu.Lock()
	close(p.news)
	p.news = make(chan struct{})
	p.mu.Unlock()
	if r.Error != nil {
		p.metrics.refused.WithLabelValues(r.Refused.String()).Inc()
		return clearing.Result{}, r.Error
	}
	return r, nil
}

func (p *proposer) next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.news
}

func (p *proposer) addRefusals(r *clearingmsg.PeersReply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for reason := clearing.Malformed; reason < clearing.Reasons; reason++ {
		n := p.screened[reason]
		if n == 0 {
			continue
		}
		i := slices.IndexFunc(r.Refused, func(t clearingmsg.RefusalTally) bool { return t.Reason == reason.String() })
		if i < 0 {
			i = len(r.Refused)
			r.Refused = append(r.Refused, clearingmsg.RefusalTally{Reason: reason.String()})
		}
		r.Refused[i].Count += n
	}
}
