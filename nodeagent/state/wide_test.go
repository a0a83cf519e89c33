package state_test

import (
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
)

// TestAWideTaskHasItsSlots grants a task of three slots to a node of four slots. While the task is suspended, its slots
// must be free. When the task has ended, the agent must claim for all three slots again.
func TestAWideTaskHasItsSlots(t *testing.T) {
	a := newAgent(t, 4, 1)
	a.join()
	a.vector(1, 1000, 2)
	r := a.request()
	reply := grants(r, 0, 1)
	for i := range reply.Programs {
		reply.Programs[i].Width = 3
	}
	a.Answered(a.now, r.ID, reply)
	if do := a.act(); len(do.Start) != 1 || a.Idle() != 1 {
		t.Fatalf("%d started, %d slots idle, want 1 and 1", len(do.Start), a.Idle())
	}
	if a.tell(1, 0); a.Idle() != 4 {
		t.Fatalf("%d slots idle while it is suspended, want 4", a.Idle())
	}
	if a.tell(2); a.Idle() != 1 {
		t.Fatalf("%d slots idle, want 1", a.Idle())
	}
	a.now = a.now.Add(messages.Duration(time.Second)) // the task runs so long that no task is claimed in advance
	a.end(0, agentmsg.Exited)
	a.vector(2, 1000, 4)
	if n := slotsOf(a.request().Exchange); n != 4 || a.Running() != 0 {
		t.Fatalf("%d slots claim after its end, %d run", n, a.Running())
	}
}

// TestAnAdoptedTaskKeepsItsWidth checks that a task that a restarted agent adopts keeps its number of slots.
func TestAnAdoptedTaskKeepsItsWidth(t *testing.T) {
	a := newAgent(t, 4, 1)
	a.Adopt(attempt(0), "cpu", 3, false)
	a.Adopt(attempt(1), "cpu", 0, false)
	if a.Idle() != 0 {
		t.Fatalf("%d slots idle, want none", a.Idle())
	}
}
