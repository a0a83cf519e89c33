package bus

import (
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
)

// paceBurst is how far the answers to a caller may be ahead of the pace.
const paceBurst = 250 * time.Millisecond

// Pace bounds the bytes of answers to each caller in a second. If a caller gets more, the place of its request in the
// pool stays taken for some time after the answer. So only the caller's own requests wait. Otherwise, one caller could
// keep a service busy with large answers, and fill the connection that also carries the answers to others. Answers of
// at most 8 KiB do not count.
type Pace struct {
	Rate int // bytes of answers to one caller in a second; 0 means no bound

	mu    sync.Mutex
	until map[messages.Name]time.Time // when the answers to a caller are within the pace again
}

// mostPaced is the number of callers above which the pace forgets those who owe nothing.
const mostPaced = 1024

// After returns how long a caller's place stays taken after an answer. Services of the site have no pace, because their
// requests are for many users.
func (p *Pace) After(caller messages.Name, bytes int) time.Duration {
	if p.Rate == 0 || bytes <= smallRequest || strings.HasPrefix(caller, messages.ServiceIdentity("")) {
		return 0
	}
	caller, now := messages.Participant(caller), time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.until) > mostPaced {
		maps.DeleteFunc(p.until, func(_ messages.Name, until time.Time) bool { return until.Before(now) })
	}
	if p.until == nil {
		p.until = map[messages.Name]time.Time{}
	}
	until := p.until[caller]
	if until.Before(now) {
		until = now
	}
	until = until.Add(time.Duration(bytes) * time.Second / time.Duration(p.Rate))
	p.until[caller] = until
	return until.Sub(now) - paceBurst
}
