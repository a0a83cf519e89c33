package nodeagent

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/bus"
)

// TestATasksRequestIsSentOnce passes on a task's request to a leader that refuses it. The agent must return the refusal
// and must not send the request again: the task's process may have given up meanwhile.
func TestATasksRequestIsSentOnce(t *testing.T) {
	network := bus.NewMemory()
	var sent atomic.Int64
	_, err := network.Connect("$auctioneer").Serve(bus.Service{Name: "leader", Version: "1.0.0", Endpoints: []bus.Endpoint{{
		Name: agent.VerbProxy, Subject: messages.Subject("home", messages.Auctioneer, agent.VerbProxy, "*"),
		Handle: bus.Handle(agent.VerbProxy, func(_ context.Context, _ messages.Name, _ agent.ProxyRequest) (agent.ProxyReply, error) {
			sent.Add(1)
			return agent.ProxyReply{}, messages.Errorf(messages.Unavailable, "too many; ask again later")
		})}}})
	if err != nil {
		t.Fatal(err)
	}
	a, of := asking(t, network)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err = a.proxy(ctx, of, messages.VerbSubmit, nil)
	if messages.KindOf(err) != messages.Unavailable || messages.Detail(err) != "too many; ask again later" || sent.Load() != 1 {
		t.Errorf("%v, sent %d times", err, sent.Load())
	}
}

// TestATasksRequestThatReachedNobody passes on a task's request while the site has no leader. The answer must say that
// the request was surely not carried out.
func TestATasksRequestThatReachedNobody(t *testing.T) {
	a, of := asking(t, bus.NewMemory())
	if _, err := a.proxy(t.Context(), of, messages.VerbSubmit, nil); messages.KindOf(err) != messages.NotLeader {
		t.Error(err)
	}
}

// asking returns an agent that runs the returned attempt.
func asking(t *testing.T, network *bus.Network) (*Agent, messages.Attempt) {
	of := messages.Attempt{Task: messages.TaskRef{Job: 7}, Number: 1}
	a := &Agent{c: Config{Site: "home", Node: "n1", Bus: network.Connect("n1")}, queue: newQueue(),
		running: map[messages.Attempt]*running{of: {}}, ended: make(chan struct{})}
	go func() {
		for {
			select {
			case <-a.queue.ready:
				for _, e := range a.queue.take(nil) {
					e(0)
				}
			case <-t.Context().Done():
				return
			}
		}
	}()
	return a, of
}
