package courier

import (
	"sync"
	"time"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
)

// Every instruction of a peer is stored in the log, even if it is refused. So a peer may send paceBurst instructions
// at once, and after that one instruction in each paceEvery. An instruction that is refused, or moves almost nothing,
// counts as paceOfIdle instructions. A repeated message, or one with a wrong signature, is not stored. It counts as
// one instruction, because a signature takes a tenth of a millisecond to verify.
const (
	paceBurst  = clearing.MaxVisits + clearing.MaxOutstanding
	paceEvery  = messages.Duration(5 * time.Millisecond)
	paceOfPage = 20 // a page of the books, or a position, counts as this many instructions
	paceOfIdle = 20
)

// pace limits the rate of instructions of each peer. It stores when each peer may again send paceBurst instructions at
// once.
type pace struct {
	mu   sync.Mutex
	full map[messages.Name]messages.Time
}

// count increases the peer's count by a number of instructions that the peer has sent. If the peer has sent too many in
// a short time, count returns an error that tells the peer how long to wait.
func (p *pace) count(peer messages.Name, instructions int, now messages.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	full := max(p.full[peer], now).Add(messages.Duration(max(0, instructions)) * paceEvery)
	if wait := full.Sub(now) - paceBurst*paceEvery; wait > 0 {
		return messages.Errorf(messages.Exhausted, "site %s sends more than %d instructions a second: ask again in %v", peer, messages.Duration(time.Second)/paceEvery, wait)
	}
	if p.full == nil {
		p.full = map[messages.Name]messages.Time{}
	}
	p.full[peer] = full
	return nil
}

// owe is called after instructions of a peer were carried out. For each of them, the peer must wait paceEvery longer
// before it may again send paceBurst instructions at once.
func (p *pace) owe(peer messages.Name, instructions int, now messages.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if instructions > 0 {
		p.full[peer] = max(p.full[peer], now).Add(messages.Duration(instructions) * paceEvery)
	}
}
