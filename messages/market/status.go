package market

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// WhyReply explains a job: why it waits, or why it ended as it did.
type WhyReply struct {
	Job     messages.JobID   `json:"job"`
	State   job.State        `json:"state"`
	Reason  string           `json:"reason"` // a stable CamelCase word, e.g. WaitingForShare
	Message string           `json:"message"`
	Shares  []job.ClassShare `json:"shares"`
	Prices  []ClassPrice     `json:"prices"`
	Change  []string         `json:"change"` // one sentence for each thing that would change the decision
	Away    *job.Away        `json:"away,omitempty"`
}

// ClassPrice is the present price of a class of slots.
type ClassPrice struct {
	Class messages.Name `json:"class"`
	// Price is in credits. In most markets it is the price of a slot-second. If the market's tariffs have no prices, it
	// is one amount that all bidders pay together: in a proportional market, the sum of the sub-budgets that are bid
	// for the class.
	Price   float64 `json:"price,omitempty"`
	Slots   int     `json:"slots"`
	Idle    int     `json:"idle"`
	Pending int     `json:"pending,omitempty"` // number of slots of the waiting tasks
	Bidders int     `json:"bidders"`
	// Sealed means that Price and Pending are hidden, because they would show the bids of other accounts.
	Sealed bool `json:"sealed,omitempty"`
	// PerSecond means that Price is the price of a slot-second for every job. Commands show it for an hour.
	PerSecond bool `json:"per_second,omitempty" since:"2"`
}

// NodesReply lists the nodes of a site by name.
type NodesReply struct {
	Nodes []NodeStatus `json:"nodes"`
	// Licenses are the licences of the site, by name.
	Licenses []job.LicenseStatus `json:"licenses,omitempty"`
	// Windows are the maintenance windows that are not over, by number.
	Windows []Window `json:"windows,omitempty"`
}

// NodeStatus is a node as the auctioneer sees it.
type NodeStatus struct {
	Node  messages.Name    `json:"node"`
	State string           `json:"state"` // Up, Lost, Stopped, Draining, Quarantined
	Slots []job.ClassSlots `json:"slots"`
	Used  []job.ClassSlots `json:"used"`
	// Resources is everything that the node has. Sold is the part of Resources that the slots of tasks contain. Either
	// may be unknown.
	Resources *job.Resources  `json:"resources,omitempty"`
	Sold      *job.Resources  `json:"sold,omitempty"`
	Labels    []messages.Name `json:"labels,omitempty"` // jobs can choose the node by these words
	Since     messages.Time   `json:"since"`
	Finished  uint64          `json:"finished"` // number of attempts that ended there, well or not
	// DrainBy is when the site ends the remaining tasks of a draining node; 0 means that they run to their end.
	DrainBy messages.Time `json:"drain_by,omitempty"`
	// Abilities says what the node can do with a task; the names are in ability.go.
	Abilities []messages.Name `json:"abilities,omitempty"`
	// Suspended is the number of suspended tasks on the node; the node keeps at most MostSuspended.
	Suspended     int `json:"suspended,omitempty"`
	MostSuspended int `json:"most_suspended,omitempty"`
	// Reason says why the node is in quarantine or drains. If tasks fail on a node that is not in quarantine, Reason
	// says why the node is not in quarantine. ProbeAt is the time of the next probe.
	Reason  string        `json:"reason,omitempty"`
	ProbeAt messages.Time `json:"probe_at,omitempty"`
	// Window is the number of the maintenance window that drains the node; 0 means that none does.
	Window uint32 `json:"window,omitempty"`
	// Level is the level of the release that its agent runs; see [messages.Level].
	Level int `json:"level,omitempty"`
}

// MarketsReply lists the markets of a site in the order of its configuration.
type MarketsReply struct {
	Markets []MarketStatus `json:"markets"`
	Version uint64         `json:"version"` // version of the site's markets; see ApplyRequest
	// Slurm says which names of Slurm have a special meaning at this site; nil means none.
	Slurm *SlurmNames `json:"slurm,omitempty"`
}

// MarketStatus describes a market at this moment. An operator sees everything. A user sees their own jobs, and what the
// mechanism shows about others.
type MarketStatus struct {
	Market Market `json:"market"`
	// Bid lists the fields of a bid that the market uses, with their names in a job file. Raises lists the fields of a
	// bid that can be raised later.
	Bid      []string     `json:"bid,omitempty"`
	Raises   []string     `json:"raises,omitempty"`
	Gains    string       `json:"gains"`              // the most that an owner is known to gain by a bid that is not the truth
	Reserves bool         `json:"reserves,omitempty"` // the market sells reservations and has a timetable
	Prices   []ClassPrice `json:"prices"`
	Waiting  int          `json:"waiting"` // number of jobs
	Running  int          `json:"running"`
	Term     uint64       `json:"term"`
	Seq      uint64       `json:"seq"`
	Top      []JobShare   `json:"top"` // at most 20 jobs; the largest budget first, if budgets are visible
	// Next has the job that would get the next free slot of each class with waiting tasks. If the market has prices for
	// time, Tariffs has the prices of slot-seconds.
	Next    []NextJob    `json:"next,omitempty"`
	Tariffs []SlotTariff `json:"tariffs,omitempty"`
	// Promises counts the completion times that the market has promised and kept, or broken. Only markets that sell
	// contracts have it.
	Promises *Promises `json:"promises,omitempty"`
}

// Promises counts the completion times that a market has sold since it began: how many were kept, and how many were
// broken. A completion time is kept if the job is late by at most a second, or by at most a hundredth of the promised
// time.
type Promises struct {
	Kept   uint64 `json:"kept"`
	Broken uint64 `json:"broken"`
}

// NextJob is the job that would get the next free slot of a class.
type NextJob struct {
	Class   messages.Name    `json:"class"`
	Job     messages.JobID   `json:"job"`
	Account messages.Name    `json:"account"`
	Rate    messages.Credits `json:"rate,omitempty"` // its bid for a slot-second
}

// SlotTariff is the price of a second on a slot of a class.
type SlotTariff struct {
	Class  messages.Name     `json:"class"`
	Price  messages.Credits  `json:"price,omitempty"`   // the price for all jobs, unless a field below says otherwise
	OwnBid bool              `json:"own_bid,omitempty"` // each job pays its own bid instead
	Length messages.Duration `json:"length,omitempty"`  // the price is for a job of this length; a longer job pays more in proportion
	// Contention is set for a market of the mechanism proportional, which has no price. It says how much jobs compete
	// for the slots, from 0 (every task has a slot) to 1.
	Contention *float64 `json:"contention,omitempty"`
	// Sealed is true if the price is not shown because it would disclose the bids of one other account.
	Sealed bool `json:"sealed,omitempty"`
}

// JobShare is a job's share of each class of its market. Only the job's owner and operators see the name and the
// budget.
type JobShare struct {
	Job     messages.JobID   `json:"job"`
	Name    string           `json:"name,omitempty"`
	Account messages.Name    `json:"account"`
	Budget  messages.Credits `json:"budget,omitempty"`
	Shares  []job.ClassShare `json:"shares"`
	Pending int              `json:"pending"`
	Running int              `json:"running"` // number of tasks on slots
	// Suspended is the number of suspended tasks, which have no slot.
	Suspended int `json:"suspended,omitempty"`
}
