package runner

import (
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/nodeagent/runner/cell"
)

// TestNobodyWaitsForAFreeze makes the freezer hang. Calls that suspend or resume the task must still return. When the
// freezer works again, the last of these calls must count.
func TestNobodyWaitsForAFreeze(t *testing.T) {
	p, err := NewProcesses(Config{Site: "home", Node: "n1", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	asked, let := make(chan bool, 16), make(chan struct{})
	p.freeze = func(_ *cell.Cell, frozen bool) (bool, error) {
		asked <- frozen
		<-let
		return true, nil
	}
	done := make(chan agent.Finished, 1)
	a := messages.Attempt{Task: messages.TaskRef{Job: 7}, Number: 1}
	s := p.Start(Task{Grant: agent.Grant{Attempt: a}, Program: &agent.Program{Job: 7, Account: "ann", Class: "cpu", Script: "exec sleep 1000"}},
		func(f agent.Finished) { done <- f })
	ordered := make(chan struct{})
	go func() {
		defer close(ordered)
		s.Suspend(true)
		<-asked // the freezer hangs from here on
		s.Suspend(false)
		s.Suspend(true)
		s.Suspend(false)
		s.Stop(0)
		p.check()
	}()
	select {
	case <-ordered:
	case <-time.After(await.Patience):
		t.Fatal("an order waits for the freezer")
	}
	close(let)
	select {
	case f := <-done:
		if f.Outcome != agent.Stopped {
			t.Errorf("%+v", f)
		}
	case <-time.After(await.Patience):
		t.Fatal("the task does not end")
	}
	if frozen := <-asked; frozen {
		t.Error("it was not resumed before its end")
	}
}
