package executor

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/boottime"
)

const patience = await.Patience

func openHere(t *testing.T, dir string) *Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	k, err := Open(ctx, Config{Command: []string{os.Args[0], Argument}, Runner: runner.Config{Site: "home", Node: "n1", Dir: dir}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

// The function `cut` breaks the connection, and calls `orders` while there is none. Then it lets the client connect to
// the executor again.
func cut(t *testing.T, k *Client, orders func()) {
	t.Helper()
	k.mu.Lock()
	c := k.conn
	k.conn = nil
	k.mu.Unlock()
	orders()
	c.finish()
}

// settled returns when the executor has handled every frame that was sent.
func settled(t *testing.T, k *Client) {
	t.Helper()
	if _, err := k.Owner(7); messages.KindOf(err) == messages.Unavailable {
		t.Fatal(err)
	}
}

func sleeper(t *testing.T, k *Client) (runner.Process, chan agent.Finished) {
	done := make(chan agent.Finished, 1)
	p := k.Start(runner.Task{Grant: agent.Grant{Attempt: messages.Attempt{Task: messages.TaskRef{Job: 7}, Number: 1}},
		Program: &agent.Program{Job: 7, Account: "ann", Class: "cpu", Script: "exec sleep 1000"}}, func(f agent.Finished) { done <- f })
	settled(t, k)
	return p, done
}

// watched returns a channel of the client's reports on whether tasks can be started.
func watched(k *Client) chan bool {
	able := make(chan bool, 16)
	k.Notify(func(is bool) { able <- is })
	return able
}

func next(t *testing.T, able chan bool, want bool) {
	t.Helper()
	select {
	case is := <-able:
		if is != want {
			t.Fatalf("able to start: %v", is)
		}
	case <-time.After(patience):
		t.Fatalf("nobody says %v", want)
	}
}

// TestOrdersOutliveTheConnection gives orders for a task while the connection is broken. The task must get them after
// the next connection.
func TestOrdersOutliveTheConnection(t *testing.T) {
	dir := t.TempDir()
	k := openHere(t, dir)
	p, _ := sleeper(t, k)
	able := watched(k)
	next(t, able, true)
	cut(t, k, func() { p.Suspend(true) })
	next(t, able, false)
	next(t, able, true)
	settled(t, k)
	if err := k.Detach(); err != nil {
		t.Fatal(err)
	}

	k = openHere(t, dir)
	done := make(chan agent.Finished, 1)
	all := k.Adopt(func(f agent.Finished) { done <- f })
	if len(all) != 1 || !all[0].Suspended {
		t.Fatalf("adopted %+v, want it suspended", all)
	}
	cut(t, k, func() { all[0].Process.Suspend(false); all[0].Process.Stop(0) })
	select {
	case f := <-done:
		if f.Outcome != agent.Stopped {
			t.Errorf("%+v", f)
		}
	case <-time.After(patience):
		t.Fatal("the task goes on")
	}
}

// TestQuestionEndsWithTheConnection checks that a caller does not wait for an answer after the connection has broken.
func TestQuestionEndsWithTheConnection(t *testing.T) {
	k := openHere(t, t.TempDir())
	sleeper(t, k)
	able := watched(k)
	next(t, able, true)
	answered := make(chan error, 1)
	go func() {
		_, err := k.ReadLog(context.Background(), agent.LogsRequest{Attempt: messages.Attempt{Task: messages.TaskRef{Job: 7}, Number: 1},
			Wait: messages.Duration(time.Hour)})
		answered <- err
	}()
	for asked := false; !asked; {
		k.mu.Lock()
		asked = len(k.questions) > 0
		k.mu.Unlock()
	}
	cut(t, k, func() {})
	select {
	case err := <-answered:
		if messages.KindOf(err) != messages.Unavailable {
			t.Errorf("%v", err)
		}
	case <-time.After(patience):
		t.Fatal("still waiting")
	}
	next(t, able, false)
	next(t, able, true) // closing needs a connection, so wait for one
}

// TestLeaseOutlivesTheConnection sets a new end of the lease while the connection is broken. The next connection must
// tell the executor this end.
func TestLeaseOutlivesTheConnection(t *testing.T) {
	k := openHere(t, t.TempDir())
	_, done := sleeper(t, k)
	k.Keep(boottime.Now() + time.Hour) // the executor may read this only after the connection has broken
	cut(t, k, func() { k.Keep(boottime.Now() + time.Millisecond) })
	select {
	case f := <-done:
		if f.Outcome != agent.Stopped {
			t.Errorf("%+v", f)
		}
	case <-time.After(patience):
		t.Fatal("the task outlives its lease")
	}
}
