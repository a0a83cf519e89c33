package job

import (
	"cmp"

	"github.com/candor-grid/candor/messages"
)

// Contract is a completion time with its price. A market offers it in a quote, and a job that accepts the quote stores
// it. The contract has two job types. The market schedules the job as if the job had declared the type Surrogate. The
// type Replica says how much a completion at a given time is worth. Promised is the worth of the completion time in the
// contract. When the job has completed, the price is multiplied by the worth of the actual completion time, and divided
// by Promised.
type Contract struct {
	Completion messages.Time    `json:"completion"`
	Price      messages.Credits `json:"price"`
	Promised   float64          `json:"promised"` // credits: the worth of Completion according to Replica
	// Replica and Surrogate are two possible types of a job of this job's class, as described above. Their times are in
	// seconds from the submission of the job.
	Replica   Valuation `json:"replica"`
	Surrogate Valuation `json:"surrogate"`
	// Planned is the run time of each task in the plan. The plan is the schedule from which the contract's completion
	// time was promised. 0 means the declared run time.
	Planned messages.Duration `json:"planned,omitempty"`
}

// Validate checks a contract.
func (c *Contract) Validate() error {
	if c.Completion <= 0 {
		return messages.Errorf(messages.Invalid, "completion: must be an instant after 1970, is %d microseconds", int64(c.Completion))
	}
	if c.Price < 0 || c.Price > messages.MaxCredits {
		return messages.Errorf(messages.Invalid, "price: must be from 0 to %v credits, is %v", messages.MaxCredits, c.Price)
	}
	if !(c.Promised >= 0 && c.Promised <= messages.MaxCredits.Float()) {
		return messages.Errorf(messages.Invalid, "promised: must be from 0 to %v credits, is %v", messages.MaxCredits, c.Promised)
	}
	if c.Planned < 0 {
		return messages.Errorf(messages.Invalid, "planned: must not be negative, is %v", c.Planned)
	}
	return cmp.Or(messages.InField("replica", c.Replica.Validate()), messages.InField("surrogate", c.Surrogate.Validate()))
}
