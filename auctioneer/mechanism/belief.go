package mechanism

import "github.com/candor-grid/candor/messages"

// Runtimes is what was seen of how long tasks like those of a job run, of all its
// stages alike.
type Runtimes struct {
	Seconds    []float64 // equally likely
	Divergence float64   // in nats: how far from the truth they may be
	Runs       float64   // tasks or jobs that they rest on
}

// Believing is a Mechanism that goes by what is thought of jobs before they declare
// anything.
type Believing interface {
	Mechanism
	// Believe says which types are likely, each as much as any other; none: that
	// nothing is known. It holds until it is said anew.
	Believe(types []messages.QueuedType)
}
