package bank

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// Every command of a user leaves a record in the journal, even if it is refused. So the commands of a user are limited:
// paceBurst at once, and then one in each paceEvery. Operators have no limit. Callers whose names begin with $ are
// services and the banks of peers. They have other limits: services limit their users themselves, and package courier
// limits peers.
const (
	paceBurst = 100
	paceEvery = messages.Duration(time.Second / 2)
	// maxPaced is the maximum number of remembered users. If there are more, the users who have waited long enough to
	// send paceBurst commands again are forgotten.
	maxPaced = 10_000
)

// pace limits the rate of users' requests. A user may send up to paceBurst requests at once; after that, the user must
// wait. For each user, pace stores the time from which the user may send paceBurst requests at once again.
type pace struct {
	config  *Config
	metrics *metrics
	callers *callers
	mu      sync.Mutex
	full    map[messages.Name]messages.Time
}

// count counts a user's request, or returns an error if the user has sent too many.
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

// The method bound limits the commands of a service. It returns the service with this limit: a user may send only a
// certain number of commands in a period of time, and gets an error for more.
func (p *pace) bound(s bus.Service) bus.Service {
	if s.Discoverable {
		return s // queries leave no record, so they have no limit
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
