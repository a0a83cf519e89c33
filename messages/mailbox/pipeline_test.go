package mailbox

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// answering starts a fake replica that votes for everybody and writes nothing. When it gets a request to add entries,
// it calls the function `agrees`, which may wait. It answers the request with the result of this function.
func (g *group) answering(id string, agrees func() bool) {
	c := g.config(id)
	s, err := openStream(c.withDefaults())
	if err != nil {
		g.t.Fatal(err)
	}
	s.asked.Store(new(newExchange(s, func(string, hello) hello { return hello{Same: true} }).serve))
	peer := newTransport(c.withDefaults(), s)
	ended := make(chan struct{})
	g.t.Cleanup(func() {
		close(ended)
		_, _ = peer.Close(), s.Close()
	})
	go func() {
		for {
			select {
			case rpc := <-peer.Consumer():
				go rpc.Respond(answerTo(rpc.Command, agrees), nil)
			case <-ended:
				return
			}
		}
	}()
}

func answerTo(command any, agrees func() bool) any {
	switch q := command.(type) {
	case *raft.RequestVoteRequest:
		return &raft.RequestVoteResponse{Term: q.Term, Granted: true}
	case *raft.RequestPreVoteRequest:
		return &raft.RequestPreVoteResponse{Term: q.Term, Granted: true}
	case *raft.AppendEntriesRequest:
		last := q.PrevLogEntry + uint64(len(q.Entries))
		if len(q.Entries) > 0 && !agrees() {
			return &raft.AppendEntriesResponse{Term: q.Term, LastLog: q.PrevLogEntry, NoRetryBackoff: true}
		}
		return &raft.AppendEntriesResponse{Term: q.Term, LastLog: last, Success: true}
	}
	return &raft.TimeoutNowResponse{}
}

// After a refusal, Raft may send more entries, although it does not read the answers any more. Then the sender must not
// wait for ever.
func TestPipelineEndsWithARefusal(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 2, nil)
	var requests atomic.Uint64
	g.answering("r2", func() bool { return requests.Add(1) != 2 })
	c := g.configWithDefaults()
	s, err := openStream(c)
	if err != nil {
		t.Fatal(err)
	}
	sender := newGate(newTransport(c, s))
	sender.leadership = &leadership{} // a replica that does not lead
	sender.engine = &engine{config: c, guard: newGuard(c, nil)}
	t.Cleanup(func() { _ = sender.Close() })
	p, err := sender.AppendEntriesPipeline("r2", "r2")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for err == nil {
			_, err = p.AppendEntries(&raft.AppendEntriesRequest{Entries: []*raft.Log{{Index: 1}}}, new(raft.AppendEntriesResponse))
		}
	}()
	for f := range p.Consumer() {
		if !f.Response().Success {
			break
		}
	}
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the sender waits for a reader that is gone")
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	<-ended
}

// Close must return although a replica accepts entries and does not answer.
func TestCloseDoesNotWaitForSilence(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 2, func(c *Config) { c.limits.stuckAfter = patience })
	var silent atomic.Bool
	arrived, ended := make(chan struct{}, 1000), make(chan struct{})
	g.answering("r2", func() bool {
		if silent.Load() {
			arrived <- struct{}{}
			<-ended
		}
		return true
	})
	t.Cleanup(func() { close(ended) }) // runs before the clean-up of the peer
	g.start("r1")
	leader := g.leader()
	g.propose("answered")
	silent.Store(true)
	go func() { _, _ = leader.Propose(context.Background(), []byte("in flight")) }()
	<-arrived
	if err := leader.Close(); err != nil {
		t.Error(err)
	}
}
