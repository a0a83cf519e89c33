package witness

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/candor-grid/candor/messages"
)

// groupSize is how many accounts pay one another.
const groupSize = 3

// Requests about accounts, and their answers.
type (
	moneyAsk struct {
		kind     string // "pay", "grant" or "balance"
		from, to int    // accounts in the group; for a balance: to
		amount   messages.Credits
	}
	moneyTold struct {
		outcome outcome
		balance messages.Credits
	}
	purses [groupSize]messages.Credits
)

func (in moneyAsk) verb() string { return in.kind }

// moneyModel returns a group of accounts, one request at a time.
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

// Requests about a job, and their answers.
type (
	jobAsk  struct{ key, kind string } // "submit", "cancel" or "show"
	jobTold struct {
		outcome outcome
		job     messages.JobID
		state   messages.State // for "show"
		missing bool           // for "show"
	}
	jobState struct {
		job   messages.JobID // 0: there is none yet
		phase phase
	}
)

func (in jobAsk) verb() string { return in.kind }

// phase is how far a job is, as far as its clients can know.
type phase uint8

const (
	active phase = iota
	cancelling
	over // it has ended, or a repeated request cancelled it
	completed
	cancelled
)

// jobModel is a job, one request at a time. It has one number. Once cancelled it stays cancelled,
// and once ended it never comes back. A job ends by itself at any time.
var jobModel = porcupine.Model{
	Init: func() any { return jobState{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(jobState), input.(jobAsk), output.(jobTold)
		if out.outcome == unknown {
			return true, s // the clients do not use the key again, so the result does not matter
		}
		switch {
		case in.kind == "submit" && s.job == 0:
			s.job = out.job
			return out.outcome == acknowledged && out.job != 0, s
		case in.kind == "submit":
			return out.outcome == acknowledged && out.job == s.job, s
		case s.job == 0:
			return false, s
		case in.kind == "cancel" && out.outcome == refused: // as Ended
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

// show returns the states in which a job may be shown, and what is known after it was.
func (s jobState) show(out jobTold) (bool, any) {
	switch {
	case out.missing:
		return false, s
	case !out.state.Final():
		return s.phase == active || s.phase == over || s.phase == cancelling, s
	case out.state == messages.Cancelled:
		fits := s.phase == over || s.phase == cancelling || s.phase == cancelled
		s.phase = cancelled
		return fits, s
	default:
		fits := s.phase == active || s.phase == over || s.phase == completed
		s.phase = completed
		return fits, s
	}
}

// Requests about the markets, and their answers: the time limit of one market, and the version of
// the markets.
type (
	marketAsk struct {
		apply   messages.Duration // 0: they are read
		version uint64            // the only version at which they may change; 0: any
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

// marketModel returns the markets, as a register that is compared and set.
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

// checkWithin bounds how long porcupine looks at one history.
const checkWithin = 20 * time.Second

// linearize asks porcupine about each history of the round.
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
			w.breaks("the answers about %s fit no order of its %d requests", name, len(history))
		case porcupine.Unknown:
			w.counts.Undecided++
		}
	}
}
