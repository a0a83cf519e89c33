package witness

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// Counts has the numbers of events that a witness has seen since it began.
type Counts struct {
	Acknowledged int // number of requests that changed something
	Read         int // number of answers to queries
	Refused      int // number of requests that were refused for good
	GivenUp      int // number of requests whose outcome stayed unknown

	Lost    int              // number of acknowledged payments, grants and jobs that are missing
	Doubled int              // number of things that were done twice
	Wrong   messages.Credits // sum of the errors in balances and charges
	// Disordered is the number of histories whose answers are not possible in any order of the requests. Undecided is
	// the number of histories that the checker, porcupine, could not decide in time.
	Disordered, Undecided int

	// Verbs has the counts of answers for each verb, such as "pay".
	Verbs    map[string]Verb
	Jobs     int           // number of acknowledged submissions
	RanTwice int           // number of jobs whose task ran more than once; only one run counts
	Silence  time.Duration // longest time without an acknowledgement
	Longest  time.Duration // longest time that a request waited for its answer
}

// Verb counts the results of the requests of one kind.
type Verb struct {
	Answered int           // acknowledged, read or finally refused
	Longest  time.Duration // longest wait for an answer: the verb was unavailable for about this long
}

// Sound reports whether the site kept its promises.
func (c *Counts) Sound() bool {
	return c.Lost == 0 && c.Doubled == 0 && c.Wrong == 0 && c.Disordered == 0 && c.GivenUp == 0
}

type record struct {
	began time.Time

	mu        sync.Mutex
	histories map[string][]porcupine.Operation // by model of the checker porcupine
	counts    Counts
	last      time.Time     // time of the last acknowledgement
	silence   time.Duration // longest time without an acknowledgement since the last call of Silence
	broken    []string
}

func (r *record) now() int64 { return int64(time.Since(r.began)) }

type request interface{ verb() string }

type outcome uint8

const (
	read         outcome = iota // a query was answered
	acknowledged                // the request was carried out
	refused                     // the request was not carried out and never will be
	unknown                     // the client gave up, and the request may still be carried out
)

func (r *record) note(client int, model string, call int64, input request, output any, o outcome) {
	end, at := r.now(), time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	verb := r.counts.Verbs[input.verb()]
	verb.Longest = max(verb.Longest, time.Duration(end-call))
	if o != unknown {
		verb.Answered++
	}
	r.counts.Verbs[input.verb()] = verb
	r.counts.Longest = max(r.counts.Longest, verb.Longest)
	switch o {
	case read:
		r.counts.Read++
	case acknowledged:
		r.counts.Acknowledged++
		r.silence = max(r.silence, at.Sub(r.last))
		r.counts.Silence = max(r.counts.Silence, r.silence)
		r.last = at
	case refused:
		r.counts.Refused++
	case unknown:
		r.counts.GivenUp++
		end = math.MaxInt64
	}
	r.histories[model] = append(r.histories[model], porcupine.Operation{ClientId: client, Input: input, Call: call, Output: output, Return: end})
}

// Silence returns the longest time without an acknowledgement since the last call of Silence.
func (r *record) Silence() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	longest := max(r.silence, time.Since(r.last))
	r.silence = 0
	return longest
}

func (r *record) breaks(format string, arguments ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = append(r.broken, fmt.Sprintf(format, arguments...))
}

// betweenTries is the pause before a client repeats a request that was refused for a temporary reason.
const betweenTries = 50 * time.Millisecond

// ask repeats a request until its outcome is known, but not longer than `patience`. If this time has passed, ask
// returns an error with a temporary reason (see messages.Waits).
func ask[Reply any](ctx context.Context, b bus.Bus, patience time.Duration, subject string, request any) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		reply, err := bus.Call[Reply](ctx, b, subject, request)
		if err == nil || !messages.Waits(err) {
			return reply, err
		}
		select {
		case <-ctx.Done():
			return reply, err
		case <-time.After(betweenTries):
		}
	}
}

// judge returns the outcome of a request that ended with the error `err`. If the kind of this error is in `holding`,
// the request was finally refused.
func judge(err error, holding ...messages.Kind) outcome {
	switch {
	case err == nil:
		return acknowledged
	case slices.Contains(holding, messages.KindOf(err)):
		return refused
	}
	return unknown
}
