package bus

import (
	"strings"
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
)

// How long an attempt waits at first: so long as the answers lately let expect, within
// bounds, and firstAttempt before the first of them. A request that was with a leader as
// it died is then soon sent to the next, and a slow site is not asked more often.
const (
	leastAttempt = 500 * time.Millisecond
	firstAttempt = time.Second
)

// answerTime is how long answers take: a mean and a mean deviation, as TCP measures round
// trips (RFC 6298).
type answerTime struct{ mean, deviation time.Duration }

// after is the answer time after one more answer.
func (a answerTime) after(took time.Duration) answerTime {
	if a == (answerTime{}) {
		return answerTime{took, took / 2}
	}
	return answerTime{a.mean + (took-a.mean)/8, a.deviation + ((took-a.mean).Abs()-a.deviation)/4}
}

// attempt is how long to wait for the next answer.
func (a answerTime) attempt() time.Duration {
	if a == (answerTime{}) {
		return firstAttempt
	}
	return min(max(a.mean+4*a.deviation, leastAttempt), attemptTimeout)
}

// answers has the answer times of the verbs that a connection asked for.
type answers struct {
	mu     sync.Mutex
	byVerb map[string]answerTime
}

// answering is a bus that measures how long answers take, and looks whether its server, and who
// serves a subject, are still there.
type answering interface {
	answerTimes() *answers
	look(subject string)
}

// verbOf is a subject without the caller.
func verbOf(subject string) string {
	return subject[:max(0, strings.LastIndexByte(subject, '.'))]
}

// attempt is how long a request on a subject waits at first.
func (a *answers) attempt(subject string) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byVerb[verbOf(subject)].attempt()
}

// note notes how long an answer took.
func (a *answers) note(subject string, took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byVerb == nil {
		a.byVerb = map[string]answerTime{}
	}
	verb := verbOf(subject)
	a.byVerb[verb] = a.byVerb[verb].after(took)
}

// patient is a request whose answer may come as late as it says, because who answers waits
// for others.
type patient interface{ Waits() messages.Duration }

// firstPatience is how long the first attempt of a request waits on a bus, and whether
// who answers waits for others.
func firstPatience(b Bus, subject string, request any) (patience time.Duration, waits bool) {
	patience = attemptTimeout
	if m, measures := b.(answering); measures {
		patience = m.answerTimes().attempt(subject)
	}
	if p, can := request.(patient); can && p.Waits() > 0 {
		patience, waits = max(patience, p.Waits().Std()+leastAttempt), true
	}
	return patience, waits
}
