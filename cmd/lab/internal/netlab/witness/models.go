package witness

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/candor-grid/candor/messages"
)

// groupSize is how many accounts pay one another.
const groupSize = 3

// What is asked of accounts and answered.
type (
	moneyAsk struct {
		kind     string // "pay", "grant" or "balance"
		from, to int    // in the group; of a balance: to
		amount   messages.Credits
	}
	moneyTold struct {
		outcome outcome
		balance messages.Credits
	}
	purses [groupSize]messages.Credits
)

func (in moneyAsk) verb() string { return in.kind }

// moneyModel is a group of accounts, one request at a time.
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

// What is asked of a job and answered.
type (
	jobAsk  struct{ key, kind string } // "submit", "cancel" or "show"
	jobTold struct {
		outcome outcome
		job     messages.JobID
		state   messages.State // of "show"
		missing bool           // of "show"
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
	over // it has ended, or was cancelled by a request that was repeated
	completed
	cancelled
)

// jobModel is a job, one request at a time: it has one number, it stays cancelled once it
// was, and it never comes back once it has ended. A job ends by itself at any time.
var jobModel = porcupine.Model{
	Init: func() any { return jobState{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(jobState), input.(jobAsk), output.(jobTold)
		if out.outcome == unknown {
			return true, s // whatever it did, the clients use the key no more
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

// show is what a job may be seen to be, and what is known of it then.
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

// What is asked of the markets and answered: the time limit of one of them, and their
// version.
type (
	marketAsk struct {
		apply   messages.Duration // 0: they are read
		version uint64            // at which alone they are to change; 0: at any
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

// marketModel is the markets, as a register that is compared and set.
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
