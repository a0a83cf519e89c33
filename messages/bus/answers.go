package bus

import (
	"strings"
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
)

// These constants bound how long the first attempt of a request waits. It waits as long as recent answers took, or
// firstAttempt before the first answer. So if a leader dies, the request soon goes to the next leader.
const (
	leastAttempt = 500 * time.Millisecond
	firstAttempt = time.Second
)

// answerTime is how long answers take: a mean and a mean deviation, as TCP estimates round
// trips (RFC 6298).
type answerTime struct{ mean, deviation time.Duration }

// after returns the estimate of the answer time, updated with the time that one more answer took.
func (a answerTime) after(took time.Duration) answerTime {
	if a == (answerTime{}) {
		return answerTime{took, took / 2}
	}
	return answerTime{a.mean + (took-a.mean)/8, a.deviation + ((took-a.mean).Abs()-a.deviation)/4}
}

func (a answerTime) attempt() time.Duration {
	if a == (answerTime{}) {
		return firstAttempt
	}
	return min(max(a.mean+4*a.deviation, leastAttempt), attemptTimeout)
}

// answers has the times after which the requests of one connection were answered, for each verb.
type answers struct {
	mu     sync.Mutex
	byVerb map[string]answerTime
}

// answering is a bus that measures how long answers take. After a request without an answer, it can check whether its
// server and a service still answer.
type answering interface {
	answerTimes() *answers
	look(subject string)
}

func verbOf(subject string) string {
	return subject[:max(0, strings.LastIndexByte(subject, '.'))]
}

func (a *answers) attempt(subject string) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byVerb[verbOf(subject)].attempt()
}

func (a *answers) note(subject string, took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byVerb == nil {
		a.byVerb = map[string]answerTime{}
	}
	verb := verbOf(subject)
	a.byVerb[verb] = a.byVerb[verb].after(took)
}

// The type `patient` is a request whose service waits for answers of other actors. The answer to such a request may
// take as long as the method Waits returns.
type patient interface{ Waits() messages.Duration }

// firstPatience returns how long the first attempt of a request waits for an answer. It also returns whether the
// request itself says how long the service may take.
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
