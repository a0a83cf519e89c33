package runner

import (
	"context"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner/stream"
)

// TestAStreamOfATaskThatStartsIsAskedForAgain asks for the stream of a task that is slow to start. The client must be
// told to ask again, unless the task never has a stream.
func TestAStreamOfATaskThatStartsIsAskedForAgain(t *testing.T) {
	attempt := messages.Attempt{Task: messages.TaskRef{Job: 7}, Number: 1}
	for _, one := range []struct {
		interactive *jobmsg.Interactive
		want        messages.Kind
	}{{new(jobmsg.Interactive), messages.Unavailable}, {nil, messages.Conflict}} {
		starting := &process{task: Task{Program: &agent.Program{Interactive: one.interactive}}, opened: make(chan struct{}), ended: make(chan struct{})}
		p := &Processes{running: map[messages.Attempt]*process{attempt: starting}}
		p.streams = stream.NewStreams(p.runs)
		ctx, over := context.WithCancel(t.Context())
		over()
		if _, err := p.stream(ctx, &agent.StreamRequest{Attempt: attempt}); messages.KindOf(err) != one.want {
			t.Errorf("interactive %v: %v, want the kind %v", one.interactive != nil, err, one.want)
		}
	}
}
