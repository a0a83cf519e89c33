package bank

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/mailbox"
)

// trio is a log in memory and the replicas that apply it.
type trio struct {
	replicas []*replica
	banks    []*Bank

	elections sync.Mutex // one election at a time
	leader    int

	mu  sync.Mutex
	log [][]byte
}

// replica is a machine that stands between a mailbox in memory and a bank's own machine. If it leads, its proposals go
// into the group's log. If it is elected, it first applies the log.
type replica struct {
	group   *trio
	box     *mailbox.Memory
	machine mailbox.Machine
	applied int
}

func (r *replica) Check(command []byte) (int, error) { return r.machine.Check(command) }

func (r *replica) Apply(index uint64, commands [][]byte) ([]any, error) {
	r.group.mu.Lock()
	defer r.group.mu.Unlock()
	r.group.log = append(r.group.log, commands...)
	r.applied += len(commands)
	return r.machine.Apply(index, commands)
}

func (r *replica) Capture() mailbox.Image       { return r.machine.Capture() }
func (r *replica) Restore(from io.Reader) error { return r.machine.Restore(from) }
func (r *replica) Weak() error                  { return r.machine.Weak() }

// credulous is an inserted bug: the replica answers reads without checking whether it still leads.
type credulous struct{ *mailbox.Memory }

func (credulous) Verify(context.Context) error { return nil }

// newTrio starts three banks on one log; the first one leads.
func newTrio(t *testing.T, buggy bool) *trio {
	g := &trio{}
	network := bus.NewMemory()
	for i := range 3 {
		bank, err := Start(context.Background(), Config{
			Site: "here", Replica: fmt.Sprint(i), Bus: network.Connect("bank"), Operators: []messages.Name{"ops"}, Services: []messages.Name{"$auctioneer"},
			Clock: func() messages.Time { return 1000 }, Mono: still,
			Open: func(m mailbox.Machine) (mailbox.Mailbox, error) {
				r := &replica{group: g, machine: m}
				r.box = mailbox.NewMemory(r)
				if i > 0 {
					r.box.Depose()
				}
				g.replicas = append(g.replicas, r)
				if buggy {
					return credulous{r.box}, nil
				}
				return r.box, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := bank.Close(); err != nil {
				t.Error(err)
			}
		})
		g.banks = append(g.banks, bank)
	}
	return g
}

// elect makes another replica the leader. The old leader does not notice this: it keeps its state, and still answers
// callers that send requests to it.
func (g *trio) elect(next int) {
	g.elections.Lock()
	defer g.elections.Unlock()
	if next == g.leader {
		return
	}
	g.replicas[g.leader].box.Depose() // waits for the proposals of the old leader
	g.leader = next
	g.replicas[next].follow()
	g.replicas[next].box.Elect()
}

func (r *replica) follow() {
	r.group.mu.Lock()
	defer r.group.mu.Unlock()
	if more := r.group.log[r.applied:]; len(more) > 0 {
		r.machine.Apply(uint64(r.applied+1), more)
		r.applied = len(r.group.log)
	}
}
