package courier

import (
	"sync"
	"time"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
)

// Every instruction of a peer takes room in the log, also one that is refused. So a peer may
// send paceBurst of them at once, all that a cut can have kept waiting, and in the long run
// one each paceEvery. One that is refused, or moves next to nothing, counts as paceOfIdle. What
// was carried out before is answered without the log, and a message of that counts as one.
const (
	paceBurst  = clearing.MaxVisits + clearing.MaxOutstanding
	paceEvery  = messages.Duration(5 * time.Millisecond)
	paceOfPage = 20 // instructions that a page of the books counts as: it costs as much work
	paceOfIdle = 20
)

// pace counts the instructions of each peer, by the time at which the peer may send
// paceBurst again.
type pace struct {
	mu   sync.Mutex
	full map[messages.Name]messages.Time
}

// count counts a message of a peer that was screened, with so many instructions, or refuses
// it for now. A message without any counts as one.
func (p *pace) count(peer messages.Name, instructions int, now messages.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	full := max(p.full[peer], now).Add(messages.Duration(max(1, instructions)) * paceEvery)
	if wait := full.Sub(now) - paceBurst*paceEvery; wait > 0 {
		return messages.Errorf(messages.Exhausted, "site %s sends more than %d instructions a second: ask again in %v", peer, messages.Duration(time.Second)/paceEvery, wait)
	}
	if p.full == nil {
		p.full = map[messages.Name]messages.Time{}
	}
	p.full[peer] = full
	return nil
}

// owe counts what a peer sent and that was carried out already: it waits the longer for more.
func (p *pace) owe(peer messages.Name, instructions int, now messages.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if instructions > 0 {
		p.full[peer] = max(p.full[peer], now).Add(messages.Duration(instructions) * paceEvery)
	}
}
