package mailbox

//lint:file-ignore SA1019 the deprecated fields are free to carry what replicas tell each other: Raft no longer reads them

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"
)

// below is a transport as the gate needs it.
type below interface {
	raft.Transport
	raft.WithPreVote
	raft.WithClose
}

// gate stands between Raft and any transport. It lets through what this replica's
// standing allows, checks the seals of entries that arrive, and carries what replicas
// tell each other about their disks, in fields of heartbeats and votes that Raft no
// longer reads, so that releases without it take no notice.
type gate struct {
	below
	*engine
	leadership *leadership
	standing   *standing
	applier    *applier
	log        *sealedLog

	open atomic.Bool  // Raft runs
	busy sync.RWMutex // held, shared, by each heartbeat under way: the disk is closed after the last
	in   chan raft.RPC
	stop chan struct{}
	once sync.Once

	refusals atomic.Uint64 // of elections

	mu   sync.Mutex
	outs map[string]bool // replicas without a vote that may catch up
}

func newGate(t below) *gate {
	return &gate{below: t, in: make(chan raft.RPC), stop: make(chan struct{}), outs: map[string]bool{}}
}

// start begins to pass on what arrives.
func (g *gate) start() {
	g.open.Store(true)
	go func() {
		for {
			select {
			case rpc := <-g.below.Consumer():
				if !g.passes(rpc) {
					continue
				}
				select {
				case g.in <- rpc:
				case <-g.stop:
					return
				}
			case <-g.stop:
				return
			}
		}
	}()
}

// Close ends the transport. Raft's own Close does not wait for heartbeats, which write
// the term to the disk; this one does.
func (g *gate) Close() error {
	g.once.Do(func() { close(g.stop) })
	g.busy.Lock()
	g.open.Store(false)
	g.busy.Unlock()
	return g.below.Close()
}

// Consumer gives Raft what has passed.
func (g *gate) Consumer() <-chan raft.RPC { return g.in }

// SetHeartbeatHandler gives Raft the heartbeats that have passed, and the leader this
// replica's word with each answer.
func (g *gate) SetHeartbeatHandler(handle func(raft.RPC)) {
	g.below.SetHeartbeatHandler(func(rpc raft.RPC) {
		g.busy.RLock()
		defer g.busy.RUnlock()
		if !g.open.Load() {
			rpc.Respond(&raft.AppendEntriesResponse{}, errNotRunning)
			return
		}
		if !g.passes(rpc) {
			return
		}
		answer := make(chan raft.RPCResponse, 1)
		passed := rpc
		passed.RespChan = answer
		handle(passed)
		select {
		case a := <-answer:
			rpc.Respond(g.signed(a.Response), a.Error)
		default: // Raft has stopped
		}
	})
}

var errNotRunning = errors.New("mailbox: this replica is starting or stopping")

// signed adds this replica's word to the answer to a heartbeat.
func (g *gate) signed(response any) any {
	r, ok := response.(*raft.AppendEntriesResponse)
	if !ok {
		return response
	}
	s := *r
	s.Addr = write(g.word())
	return &s
}

func (g *gate) word() reply {
	last, term := g.end()
	return g.standing.says(last, term, g.applier.mark.Load())
}

// end is the end of this replica's log, for what it tells and for what it is held to
// alike: Raft notices an entry a little after it was written.
func (g *gate) end() (index, term uint64) {
	index, term = g.log.end()
	return max(index, g.raft.LastIndex()), term
}

// passes answers a request that Raft is not to see.
func (g *gate) passes(rpc raft.RPC) bool {
	switch q := rpc.Command.(type) {
	case *raft.AppendEntriesRequest:
		return g.passesEntries(rpc, q)
	case *raft.RequestVoteRequest:
		word, told := readWritten[reply](string(q.Candidate))
		return g.passesVote(rpc, g.mayVote(string(q.ID), q.LastLogIndex, word, told), &raft.RequestVoteResponse{RPCHeader: g.header(), Term: q.Term - 1})
	case *raft.RequestPreVoteRequest:
		return g.passesVote(rpc, g.mayVote(string(q.ID), q.LastLogIndex, reply{}, false), &raft.RequestPreVoteResponse{RPCHeader: g.header(), Term: q.Term - 1})
	case *raft.TimeoutNowRequest:
		return g.passesVote(rpc, g.mayCampaign(), &raft.TimeoutNowResponse{RPCHeader: g.header()})
	case *raft.InstallSnapshotRequest:
		if err := g.standing.mayFollow(q.Term); err != nil {
			_, _ = io.Copy(io.Discard, rpc.Reader)
			rpc.Respond(&raft.InstallSnapshotResponse{RPCHeader: g.header()}, err)
			return false
		}
	}
	return true
}

func (g *gate) header() raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(g.config.ID), Addr: []byte(g.config.ID)}
}

func (g *gate) mayCampaign() error {
	last, _ := g.end()
	return g.standing.mayCampaign(last)
}

func (g *gate) mayVote(id string, last uint64, word reply, told bool) error {
	return g.standing.mayVote(id, last, word, told)
}

func (g *gate) passesVote(rpc raft.RPC, refusal error, answer any) bool {
	if refusal == nil {
		return true
	}
	g.refuse(refusal)
	rpc.Respond(answer, refusal)
	return false
}

func (g *gate) refuse(why error) error {
	g.refusals.Add(1)
	g.config.Log.Warn("takes no part in an election", zap.Error(why))
	return why
}

// passesEntries reads the leader's letter, and checks that the entries arrived as they
// were sealed. Entries of leaders of older releases get a seal, without a link to the
// entry before: replicas began to seal at different entries.
func (g *gate) passesEntries(rpc raft.RPC, q *raft.AppendEntriesRequest) bool {
	if l, ok := readWritten[letter](string(q.Leader)); ok && q.Term >= g.raft.CurrentTerm() {
		last, _ := g.end()
		g.standing.hear(l, q.Term, last)
	}
	refuse := func(err error) bool {
		header := g.header()
		header.Addr = write(g.word())
		rpc.Respond(&raft.AppendEntriesResponse{RPCHeader: header}, err)
		return false
	}
	if err := g.standing.mayFollow(q.Term); err != nil {
		return refuse(&wordError{err, write(g.word())})
	}
	for _, l := range q.Entries {
		if !sealed(l) {
			l.Extensions = newSeal(sum{}, l)
		} else if err := checkSeal(l); err != nil {
			err = damagedEntry("a request of "+string(q.ID), l.Index, err)
			g.config.Log.Error("refused entries", zap.Error(err))
			return refuse(err)
		}
	}
	return true
}

// wordError carries a doubtful replica's word where a transport drops the answer that
// comes with an error.
type wordError struct {
	error
	word []byte
}

func (e *wordError) Error() string { return e.error.Error() + string(e.word) }

// AppendEntries sends a heartbeat or entries, with a letter, and hears the answer.
func (g *gate) AppendEntries(id raft.ServerID, to raft.ServerAddress, q *raft.AppendEntriesRequest, p *raft.AppendEntriesResponse) error {
	if !g.open.Load() {
		return errNotRunning
	}
	sent := *q
	sent.Leader = write(g.letter(string(id)))
	err := g.below.AppendEntries(id, to, &sent, p)
	word, told := readWritten[reply](string(p.Addr))
	if err != nil {
		word, told = readWritten[reply](err.Error())
	}
	if o := g.leadership.current.Load(); told && o != nil && o.term == q.Term {
		g.standing.heard(string(id), word, q.Term, g.raft.CommitIndex())
	}
	if told && err != nil {
		return g.refused(word)
	}
	return err
}

func (g *gate) refused(q reply) error { return errors.New(q.Why) }

// letter is what this leader tells a replica.
func (g *gate) letter(id string) letter {
	r := g.standing.promises.now()
	g.mu.Lock()
	out := g.outs[id]
	g.mu.Unlock()
	l := letter{Known: r.Known, Committed: r.Committed, Out: out, Vote: !out}
	if o := g.leadership.current.Load(); o != nil {
		l.Committed = max(l.Committed, g.raft.CommitIndex())
	}
	return l
}

// out notes that a replica has no vote, as was committed, or has one again.
func (g *gate) out(id string, out bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if out {
		g.outs[id] = true
	} else {
		delete(g.outs, id)
	}
}

// clear forgets who was out under an earlier leadership.
func (g *gate) clear() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.outs = map[string]bool{}
}

// RequestVote asks for a vote, and says whose.
func (g *gate) RequestVote(id raft.ServerID, to raft.ServerAddress, q *raft.RequestVoteRequest, p *raft.RequestVoteResponse) error {
	if !g.open.Load() {
		return errNotRunning
	}
	if err := g.standing.mayCampaign(q.LastLogIndex); err != nil {
		return g.refuse(err)
	}
	sent := *q
	sent.Candidate = write(g.word())
	return g.below.RequestVote(id, to, &sent, p)
}

// RequestPreVote asks whether a vote would be given.
func (g *gate) RequestPreVote(id raft.ServerID, to raft.ServerAddress, q *raft.RequestPreVoteRequest, p *raft.RequestPreVoteResponse) error {
	if err := g.standing.mayCampaign(q.LastLogIndex); err != nil {
		return g.refuse(err)
	}
	return g.below.RequestPreVote(id, to, q, p)
}
