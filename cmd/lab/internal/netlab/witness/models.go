package witness

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// groupSize is the number of accounts in a group that pay each other.
const groupSize = 3

type (
	moneyAsk struct {
		kind     string // "pay", "grant" or "balance"
		from, to int    // indices of accounts in the group; a request for a balance has only `to`
		amount   messages.Credits
	}
	moneyTold struct {
		outcome outcome
		balance messages.Credits
	}
	purses [groupSize]messages.Credits
)

func (in moneyAsk) verb() string { return in.kind }

// moneyModel models a group of accounts for a check of linearizability. In the model, the group handles one request at
// a time.
func moneyModel(opening purses) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return opening },
		Step: func(state, input, output any) (bool, any) {
			s, in, out := state.(purses), input.(moneyAsk), output.(moneyTold)
			switch in.kind {
			case "balance":
				return out.outcome == unknown || out.balance == s[in.to], s
			case "grant":
				s[in.to] += in.amount
				return true, s
			}
			fits := s[in.from] >= in.amount
			if out.outcome == refused || out.outcome == unknown && !fits {
				return out.outcome == unknown || !fits, s
			}
			s[in.from] -= in.amount
			s[in.to] += in.amount
			return fits, s
		},
		DescribeOperation: describe,
	}
}

type (
	jobAsk  struct{ key, kind string } // "submit", "cancel" or "show"
	jobTold struct {
		outcome outcome
		job     messages.JobID
		state   job.State // only for the request "show"
		missing bool      // only for the request "show"
	}
	jobState struct {
		job   messages.JobID // 0 if there is no job yet
		phase phase
	}
)

func (in jobAsk) verb() string { return in.kind }

// phase is the state of a job, as far as the answers to its clients show it.
type phase uint8

const (
	active phase = iota
	cancelling
	over // the job has ended, or was cancelled before a repeated request
	completed
	cancelled
)

// jobModel is the model of a job that handles one request at a time. A cancelled job stays cancelled, and an ended job
// never becomes active again. A job may end by itself at any time.
var jobModel = porcupine.Model{
	Init: func() any { return jobState{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(jobState), input.(jobAsk), output.(jobTold)
		if out.outcome == unknown {
			return true, s // no client uses this key again, so the state does not matter
		}
		switch {
		case in.kind == "submit" && s.job == 0:
			s.job = out.job
			return out.outcome == acknowledged && out.job != 0, s
		case in.kind == "submit":
			return out.outcome == acknowledged && out.job == s.job, s
		case s.job == 0:
			return false, s
		case in.kind == "cancel" && out.outcome == refused: // refused because it has ended
			if s.phase == active {
				s.phase = over
			}
			return true, s
		case in.kind == "cancel":
			fits := s.phase == active
			s.phase = cancelling
			return fits, s
		}
		return s.show(out)
	},
	DescribeOperation: describe,
}

// show reports whether a job in the state s can get the answer `out` to a question about the job. It also returns the
// state in which the job must be after this answer.
func (s jobState) show(out jobTold) (bool, any) {
	switch {
	case out.missing:
		return false, s
	case !out.state.Final():
		return s.phase == active || s.phase == over || s.phase == cancelling, s
	case out.state == job.Cancelled:
		fits := s.phase == over || s.phase == cancelling || s.phase == cancelled
		s.phase = cancelled
		return fits, s
	default:
		fits := s.phase == active || s.phase == over || s.phase == completed
		s.phase = completed
		return fits, s
	}
}

// These types are for the model of the markets. A request asks to read the markets, or to change the time limit of one
// market. An answer has this time limit, and the version of the markets.
type (
	marketAsk struct {
		apply   messages.Duration // 0 if the markets are only read
		version uint64            // the markets change only if they have this version; 0 means any version
	}
	marketTold struct {
		outcome outcome
		markets
	}
	markets struct {
		limit   messages.Duration
		version uint64
	}
)

func (in marketAsk) verb() string {
	if in.apply == 0 {
		return "markets"
	}
	return "apply"
}

// marketModel returns the model of the markets: a register with compare-and-set.
func marketModel(opening markets) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return opening },
		Step: func(state, input, output any) (bool, any) {
			s, in, out := state.(markets), input.(marketAsk), output.(marketTold)
			if in.apply == 0 {
				return out.outcome == unknown || out.markets == s, s
			}
			fits := in.version == 0 || in.version == s.version
			if out.outcome == refused || out.outcome == unknown && !fits {
				return out.outcome == unknown || !fits, s
			}
			if in.apply != s.limit {
				s.limit = in.apply
				s.version++
			}
			return fits && (out.outcome == unknown || out.version == s.version), s
		},
		DescribeOperation: describe,
	}
}

func describe(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) }

// checkWithin is the longest time that the checker of histories (package porcupine) may take for one history.
const checkWithin = 20 * time.Second

// linearize checks each history of the round with the package porcupine: some order of the requests, one after another,
// must explain all answers.
func (w *Witness) linearize() {
	for name, history := range w.histories {
		model := jobModel
		switch history[0].Input.(type) {
		case moneyAsk:
			model = moneyModel(w.opening[name])
		case marketAsk:
			model = marketModel(w.markets)
		}
		switch porcupine.CheckOperationsTimeout(model, history, checkWithin) {
		case porcupine.Illegal:
			w.counts.Disordered++
			w.breaks("the answers about %s are not possible in any order of the %d requests", name, len(history))
		case porcupine.Unknown:
			w.counts.Undecided++
		}
	}
}
