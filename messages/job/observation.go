package job

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/candor-grid/candor/messages"
)

// MostRuntimes is the largest number of run times of one stage in an observation, or in one estimate.
const MostRuntimes = 32

// StageWork is what an observation has about a stage in addition to its status. The estimator learns run times from it.
type StageWork struct {
	Stage     messages.Name     `json:"stage"`
	Command   string            `json:"command"` // from CommandID
	TimeLimit messages.Duration `json:"time_limit,omitempty"`
	// Runtimes are the run times of accepted attempts, from claim to finish, in ascending order. If there are more than
	// MostRuntimes, the list has MostRuntimes of them, evenly spaced in this order.
	Runtimes []messages.Duration `json:"runtimes,omitempty"`
}

// CommandID returns a hash of a stage's command or script, which identifies the command without disclosing it.
func CommandID(s *Stage) string {
	h := sha256.New()
	for _, part := range append([]string{s.Script}, s.Command...) {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// StageShape is the data of a stage from which the stage's run times are estimated.
type StageShape struct {
	Name      messages.Name     `json:"name"`
	Command   string            `json:"command,omitempty"` // from CommandID
	Tasks     int               `json:"tasks"`
	TimeLimit messages.Duration `json:"time_limit,omitempty"`
}

// Shape returns the data of the stage from which its run times are estimated.
func (s *Stage) Shape() StageShape {
	return StageShape{Name: s.Name, Command: CommandID(s), Tasks: s.TaskCount(), TimeLimit: s.TimeLimit}
}

// Observation is what the site learned from an ended job, for the estimator. Site and job identify an observation. An
// observation that is sent again has the same content.
type Observation struct {
	Site      messages.Name    `json:"site"`
	Job       messages.JobID   `json:"job"`
	Account   messages.Name    `json:"account"`
	Name      string           `json:"name"`
	Market    messages.Name    `json:"market"`
	State     State            `json:"state"`
	Budget    messages.Credits `json:"budget"`
	Charged   messages.Credits `json:"charged"`
	Utility   *Utility         `json:"utility"`
	Shares    []ClassShare     `json:"shares"`
	Submitted messages.Time    `json:"submitted"`
	Started   messages.Time    `json:"started"`
	Ended     messages.Time    `json:"ended"`
	Stages    []StageStatus    `json:"stages"`
	// Work has one entry for each stage, in the same order as Stages.
	Work []StageWork `json:"work,omitempty"`
	// Valuation is the job's declared valuation, a sample of a job profile class.
	Valuation *Valuation `json:"valuation,omitempty"`
	// Value, Delay and Length are what the job declared to a batch queue.
	Value  messages.Credits  `json:"value,omitempty"`
	Delay  messages.Credits  `json:"delay,omitempty"` // cost of a second of waiting
	Length messages.Duration `json:"length,omitempty"`
}
