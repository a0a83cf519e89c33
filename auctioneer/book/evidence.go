package book

import (
	"slices"

	"github.com/candor-grid/candor/messages"
)

// A node on which every task fails ends tasks faster than any healthy node, so it would draw all of the work. The book
// quarantines a node only on evidence that no user can produce alone:
//
//   - The node fails a probe, which is a task of the site that does nothing. A node gets a probe
//     after a task has failed quickly on it.
//   - Tasks of several accounts and payers failed quickly on the node and then ended well on other nodes. No task of
//     their class has ended well on the node since the failures, or in the last minute.
//
// A node in quarantine takes no work. It is probed, at growing intervals, until a probe ends well; then it takes work
// again.
const (
	// QuickEnd bounds the run time of quick failures: a task that fails within this time of its start has failed quickly.
	QuickEnd = messages.Duration(5e9)
	// leastBetween and mostBetween limit the time between two probes of a node that is not in quarantine. Each
	// successful probe doubles this time. When a task ends well, the time becomes leastBetween again.
	leastBetween = messages.Duration(1e9)
	mostBetween  = messages.Duration(60e9)
	ProbeWithin  = messages.Duration(30e9)
	// The time from a quarantine to the next probe is firstRetry. After each failed probe, the time to the next probe
	// doubles, up to lastRetry.
	firstRetry = messages.Duration(15e9)
	lastRetry  = messages.Duration(600e9)
	// Each quarantine of a node is longer than the last one. After a node has worked for levelResetAfter, the next
	// quarantine is as short as the first.
	levelResetAfter = messages.Duration(3600e9)
	// wellFor is the time for which a task that ended well counts in favour of its node.
	wellFor = messages.Duration(60e9)
	// mostFailures is the maximum number of failures that are remembered for a node.
	mostFailures = 8
	// A task failed at once on a node. During the time avoidFor, the task may start only on another node.
	avoidFor = messages.Duration(60e9)
	// A failed attempt can count against the node instead of the task. Then it does not count against the task's limit
	// of attempts. mostSpared is the maximum number of such attempts of a task.
	mostSpared = 2
)

// Health is what the site knows about failures and probes on a node. From this, it decides whether the node is put in
// quarantine.
type Health struct {
	Failures []Failure // the latest tasks that failed at once; a task of the same class that ends well removes them
	Well     []WellEnd // by class: the last time when a task ended well
	Probes   uint32    // number of probes until now
	Probe    Probe     // the probe that runs now
	Probed   messages.Time
	Cleared  messages.Time // when a probe last ended well
	Passed   int           // probes that ended well since a task last ended well
	// Quarantined is the time at which the node's quarantine began, or 0 if the node is not in quarantine. Reason says
	// why the node is in quarantine. If tasks failed but the node is not in quarantine, Reason says why not.
	Quarantined messages.Time
	Reason      string
	Retry       messages.Time // time of the next probe of a node in quarantine
	Level       int           // quarantines and failed probes in a row
	Back        messages.Time // when the last quarantine ended
}

// Failure records that a task failed on a node as soon as it started.
type Failure struct {
	Task      messages.TaskRef
	Account   messages.Name
	Payer     messages.Name
	Class     messages.Name
	At        messages.Time
	Elsewhere bool // the task has ended well on another node since
	// Had is the slot time of the attempt. The job does not pay for it if the node turns out to be at fault.
	Had messages.Duration
}

// WellEnd is the last time when a task of a class ended well on a node.
type WellEnd struct {
	Class messages.Name
	At    messages.Time
}

func (h *Health) well(class messages.Name, now messages.Time) {
	h.Well = slices.DeleteFunc(slices.Clone(h.Well), func(w WellEnd) bool { return w.Class == class || now.Sub(w.At) >= wellFor })
	h.Well = append(h.Well, WellEnd{class, now})
}

func (h *Health) endsWell(class messages.Name, now messages.Time) bool {
	return slices.ContainsFunc(h.Well, func(w WellEnd) bool { return w.Class == class && now.Sub(w.At) < wellFor })
}

// Probe is the probe that runs on the node. If none runs, its Number is 0.
type Probe struct {
	Number uint32
	Since  messages.Time
}

// doubted reports whether the node is in doubt: a task has failed there soon after its start, and no probe has ended
// well after this failure.
func (h *Health) doubted() bool {
	k := len(h.Failures)
	return k > 0 && h.Failures[k-1].At > h.Cleared
}
