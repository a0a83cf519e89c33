package core

// Change is what a decision did to some of a job's tasks while they were
// running, or waited to go on.
type Change struct {
	At    float64 // seconds from the log's beginning
	Job   int     // of the workload
	What  What
	Slots int // how many
}

// What happened.
type What uint8

// The changes.
const (
	Suspended What = iota // lost their slots, to go on where they were
	Resumed               // got slots again
	Requeued              // lost their slots or their nodes, to run again from the beginning
)

var whats = [...]string{"suspended", "resumed", "requeued"}

// String names the change.
func (w What) String() string { return whats[w] }

// Note keeps a change, if the study asks for them.
func (o *Outcome) Note(p *Problem, c Change) {
	if p.Record {
		o.Changes = append(o.Changes, c)
	}
}
