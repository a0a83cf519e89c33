package auctioneer

import (
	"context"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// dry is a bus that keeps no stream.
type dry struct{ bus.Bus }

func (dry) Stream(context.Context, string, []string) (bus.Stream, error) {
	return nil, messages.Errorf(messages.Unavailable, "no streams here")
}

// TestMoneyDoesNotWaitForObservations: without a stream for what is learned
// from jobs, jobs are charged all the same.
func TestMoneyDoesNotWaitForObservations(t *testing.T) {
	f := startOn(t, func(b bus.Bus) bus.Bus { return dry{b} })
	f.register("n1", 1)
	for i, key := range []string{"a", "b", "c"} {
		id := f.submit("alice", key, oneStage(1)).Job
		g := f.claim("n1", uint64(2*i+1), id, 1)
		f.finish("n1", uint64(2*i+2), 0, g.Grants...)
		eventually(t, "the job is final", func() bool {
			return must[messages.JobDetail](f, "alice", messages.VerbJob, messages.JobRequest{Job: id}).State == messages.Completed
		})
	}
}
