package bank

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// Every command of a user leaves a record in the journal, even if it is refused. So a user may
// send paceBurst of them at once, and one each paceEvery in the long run. Operators are not
// limited. Nor are services and the banks of peers, whose names begin with $: their requests
// are limited where they come from.
const (
	paceBurst = 100
	paceEvery = messages.Duration(time.Second / 2)
	// maxPaced is the maximum of remembered users; above it, users with their full allowance are
	// forgotten.
	maxPaced = 10_000
)

// pace limits the requests of users. For each it has the time at which the user may send
// paceBurst again.
type pace struct {
	config  *Config
	metrics *metrics
	callers *callers
	mu      sync.Mutex
	full    map[messages.Name]messages.Time
}

// count counts a user's request, or returns an error if there were too many.
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

// bound limits how fast users may use the commands of a service.
func (p *pace) bound(s bus.Service) bus.Service {
	if s.Discoverable {
		return s // queries leave no record
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
