package bank

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// Every command of a user leaves a trace in the journal, also one that was refused.
// So a user may ask for paceBurst of them at once, and for one each paceEvery in the
// long run. Operators are not bounded, nor are services and the banks of peers, whose
// names begin with $: what they ask for is bounded where it comes from.
const (
	paceBurst = 100
	paceEvery = messages.Duration(time.Second / 2)
	// maxPaced bounds the remembered users; above it, users with all their allowance
	// are forgotten.
	maxPaced = 10_000
)

// pace counts what users ask for, by the time at which each may ask for paceBurst
// again.
type pace struct {
	config  *Config
	metrics *metrics
	callers *callers
	mu      sync.Mutex
	full    map[messages.Name]messages.Time
}

// count counts a request of a user, or refuses it.
func (p *pace) count(user messages.Name, now messages.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	full := max(p.full[user], now).Add(paceEvery)
	if wait := full.Sub(now) - paceBurst*paceEvery; wait > 0 {
		return messages.Errorf(messages.Exhausted, "account %q sends too many requests to the bank: ask again in %v", user, wait)
	}
	if p.full == nil {
		p.full = map[messages.Name]messages.Time{}
	}
	if len(p.full) >= maxPaced {
		for name, until := range p.full {
			if until <= now {
				delete(p.full, name)
			}
		}
	}
	p.full[user] = full
	return nil
}

// bound bounds how fast users may ask for the commands of a service.
func (p *pace) bound(s bus.Service) bus.Service {
	if s.Discoverable {
		return s // queries leave no trace
	}
	for i := range s.Endpoints {
		verb, handle := s.Endpoints[i].Name, s.Endpoints[i].Handle
		s.Endpoints[i].Handle = func(ctx context.Context, r bus.Request) ([]byte, error) {
			if !p.callers.isOperator(r.Caller) && !strings.HasPrefix(r.Caller, "$") {
				if err := p.count(r.Caller, p.config.Clock()); err != nil {
					p.metrics.refuseRequest(verb, err)
					return nil, err
				}
			}
			return handle(ctx, r)
		}
	}
	return s
}
