package mailbox

import (
	"sync"

	"github.com/hashicorp/raft"
)

// pipeline sends entries to a replica without waiting for each answer. It ends at the first refusal. The reason: after
// a refusal, Raft reads no more answers, but may still send entries. Raft's own pipeline would then wait for ever until
// somebody reads its answers, and the sender of entries would wait for the pipeline.
type pipeline struct {
	raft.AppendPipeline
	gate    *gate
	id      raft.ServerID
	answers chan raft.AppendFuture
	closed  chan struct{}
	once    sync.Once
}

// AppendEntriesPipeline opens a pipeline to a replica.
func (g *gate) AppendEntriesPipeline(id raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	below, err := g.below.AppendEntriesPipeline(id, to)
	if err != nil {
		return nil, err
	}
	p := &pipeline{AppendPipeline: below, gate: g, id: id, answers: make(chan raft.AppendFuture), closed: make(chan struct{})}
	go p.pass()
	return p, nil
}

// AppendEntries sends entries, or a heartbeat. While this leader's disk hangs, nothing is sent.
func (p *pipeline) AppendEntries(q *raft.AppendEntriesRequest, r *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	if err := p.gate.hangs(); err != nil {
		return nil, err
	}
	return p.AppendPipeline.AppendEntries(q, r)
}

// Consumer returns the channel of answers for Raft.
func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.answers }

// Close ends the pipeline; closing again does nothing.
func (p *pipeline) Close() error {
	p.once.Do(func() { close(p.closed) })
	return p.AppendPipeline.Close()
}

// The method pass passes answers on to Raft. Raft counts an answer as a refusal if the answer failed, or if it has a
// later term. After such an answer, pass closes the embedded AppendPipeline, which sends the entries.
func (p *pipeline) pass() {
	for {
		select {
		case f := <-p.AppendPipeline.Consumer():
			r := f.Response()
			p.gate.acknowledged(string(p.id), f.Request(), r)
			if !r.Success || r.Term > f.Request().Term {
				_ = p.AppendPipeline.Close()
			}
			select {
			case p.answers <- f:
			case <-p.closed:
				return
			}
		case <-p.closed:
			return
		}
	}
}
