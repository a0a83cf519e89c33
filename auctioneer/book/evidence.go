package book

import (
	"slices"

	"github.com/candor-grid/candor/messages"
)

// A node on which every task fails ends tasks faster than any healthy node, so it would draw all of
// the work. The book quarantines a node only on evidence that no user can produce alone:
//
//   - the node fails a probe, which is a task of the site that does nothing. A probe is granted
//     after a task has failed quickly;
//   - or tasks of several accounts and payers failed quickly on the node and then ended well on
//     other nodes, while no task of their class ended well on the node, from a while before the
//     failures until now. A few accounts that conspire are not enough when others have tasks
//     there too.
//
// A node in quarantine takes no work. It is probed, at growing intervals, until a probe ends well;
// then it takes work again.
const (
	// QuickEnd is how soon after its start a task fails at once.
	QuickEnd = messages.Duration(5e9)
	// leastBetween and mostBetween bound the time between probes of a node that is not
	// in quarantine; it doubles with each probe that ends well, until a task does.
	leastBetween = messages.Duration(1e9)
	mostBetween  = messages.Duration(60e9)
	// ProbeWithin is how soon a probe has to end.
	ProbeWithin = messages.Duration(30e9)
	// firstRetry and lastRetry bound the time from a quarantine, or from a failed
	// probe, to the next probe; it doubles each time.
	firstRetry = messages.Duration(15e9)
	lastRetry  = messages.Duration(600e9)
	// levelResetAfter: each quarantine of a node is longer than the one before. After the node has
	// worked for this time without a quarantine, the next one is as short as the first.
	levelResetAfter = messages.Duration(3600e9)
	// wellFor is how long a task that ended well counts in favour of its node.
	wellFor = messages.Duration(60e9)
	// mostFailures bounds the remembered failures of a node.
	mostFailures = 8
	// avoidFor is how long a task that failed at once waits for another node.
	avoidFor = messages.Duration(60e9)
	// mostSpared is how many attempts of a task may fail without being counted.
	mostSpared = 2
)

// Health is the evidence against a node.
type Health struct {
	Failures []Failure // the latest tasks that failed at once, since one of their class ended well
	Well     []WellEnd // by class: when a task last ended well
	Probes   uint32    // made so far
	Probe    Probe     // the one under way
	Probed   messages.Time
	Cleared  messages.Time // when a probe last ended well
	Passed   int           // probes that ended well, since a task did
	// Quarantined is since when the node takes no work; 0: it takes work. Reason says
	// why, and of a node that should be in quarantine, why it is not.
	Quarantined messages.Time
	Reason      string
	Retry       messages.Time // when the node in quarantine is probed next
	Level       int           // quarantines and failed probes in a row
	Back        messages.Time // when the last quarantine ended
}

// Failure is a task that failed at once on a node.
type Failure struct {
	Task      messages.TaskRef
	Account   messages.Name
	Payer     messages.Name
	Class     messages.Name
	At        messages.Time
	Elsewhere bool // the task has ended well on another node since
	// Had is the slot time that its job must pay for it, unless the failure turns out to be the
	// node's fault.
	Had messages.Duration
}

// WellEnd is when a task of a class last ended well on a node.
type WellEnd struct {
	Class messages.Name
	At    messages.Time
}

// well notes that a task of a class ended well now.
func (h *Health) well(class messages.Name, now messages.Time) {
	h.Well = slices.DeleteFunc(slices.Clone(h.Well), func(w WellEnd) bool { return w.Class == class || now.Sub(w.At) >= wellFor })
	h.Well = append(h.Well, WellEnd{class, now})
}

// endsWell reports whether tasks of a class ended well recently.
func (h *Health) endsWell(class messages.Name, now messages.Time) bool {
	return slices.ContainsFunc(h.Well, func(w WellEnd) bool { return w.Class == class && now.Sub(w.At) < wellFor })
}

// Probe is a probe that was granted. Number is 0 if there is none.
type Probe struct {
	Number uint32
	Since  messages.Time
}

// doubted reports whether a task has failed at once since a probe last ended well.
func (h *Health) doubted() bool {
	k := len(h.Failures)
	return k > 0 && h.Failures[k-1].At > h.Cleared
}
