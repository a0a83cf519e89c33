package mailbox

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
)

// below is the transport below the gate. It has the methods that the gate needs.
type below interface {
	raft.Transport
	raft.WithPreVote
	raft.WithClose
}

// gate is a transport between Raft and another transport. The standing of this replica says whether its log and disk
// can be trusted, and so which requests it may answer. gate passes these requests on unchanged, and checks the seals of
// arriving entries.
type gate struct {
	below
	*engine
	leadership *leadership
	standing   *standing
	applier    *applier
	log        *sealedLog

	open atomic.Bool  // Raft is running
	busy sync.RWMutex // read-locked while a message is handled that may write to the disk; see whileOpen
	in   chan raft.RPC
	stop chan struct{}
	once sync.Once

	refusals atomic.Uint64 // number of refused messages of elections

	// catching has the IDs of replicas that have no vote in the committed configuration. They may still catch up with
	// the log. It is emptied when this replica begins to lead.
	catching sync.Map
	exchange *exchange
	// Both maps have a term for each replica. In introduced it is the latest term for which the replica knows that the
	// leader's log has every entry that the replica acknowledged. In answered it is the latest term in which the
	// replica answered or could not be reached.
	introduced, answered sync.Map
}

func newGate(t below) *gate {
	return &gate{below: t, in: make(chan raft.RPC), stop: make(chan struct{})}
}

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

// Close closes the transport. Unlike Raft's own Close it waits for heartbeats, which write the term to the disk, and
// for the messages of leaders and candidates, which write promises.
func (g *gate) Close() error {
	g.once.Do(func() { close(g.stop) })
	g.busy.Lock()
	g.open.Store(false)
	g.busy.Unlock()
	return g.below.Close()
}

// Consumer returns the channel of the requests that Raft may see.
func (g *gate) Consumer() <-chan raft.RPC { return g.in }

// SetHeartbeatHandler sets the handler of heartbeats that Raft may see.
func (g *gate) SetHeartbeatHandler(handle func(raft.RPC)) {
	g.below.SetHeartbeatHandler(func(rpc raft.RPC) {
		open := g.whileOpen(func() {
			if g.passes(rpc) {
				handle(rpc)
			}
		})
		if !open {
			rpc.Respond(&raft.AppendEntriesResponse{}, errNotRunning)
		}
	})
}

// whileOpen calls f, and keeps the disk open until f returns. If this replica has not started yet, or stops, whileOpen
// returns false and does not call f.
func (g *gate) whileOpen(f func()) bool {
	g.busy.RLock()
	defer g.busy.RUnlock()
	if !g.open.Load() {
		return false
	}
	f()
	return true
}

var errNotRunning = errors.New("mailbox: this replica is starting or stopping")

func (g *gate) report() standingReport {
	last, term := g.end()
	q := g.standing.report(last, term, g.applier.mark.Load())
	q.Saved, q.Level, q.Release = g.applier.saved.Load(), g.config.limits.level, messages.ThisRelease()
	if err := g.weak(); err != nil {
		q.Weak = err.Error()
	}
	return q
}

// end returns an index and a term. The index is the last one in this replica's log, or Raft's own last index, whichever
// is larger. The term is the term of the last entry that was written to the log.
func (g *gate) end() (index, term uint64) {
	index, term = g.log.end()
	return max(index, g.raft.LastIndex()), term
}

// passes reports whether Raft may get a request. If not, passes answers the request itself.
func (g *gate) passes(rpc raft.RPC) bool {
	switch q := rpc.Command.(type) {
	case *raft.AppendEntriesRequest:
		return g.passesEntries(rpc, q)
	case *raft.RequestVoteRequest:
		return g.passesVote(rpc, g.standing.mayVote(string(q.ID), q.LastLogIndex), &raft.RequestVoteResponse{RPCHeader: g.header(), Term: q.Term - 1})
	case *raft.RequestPreVoteRequest:
		return g.passesVote(rpc, g.standing.mayVote(string(q.ID), q.LastLogIndex), &raft.RequestPreVoteResponse{RPCHeader: g.header(), Term: q.Term - 1})
	case *raft.TimeoutNowRequest:
		last, _ := g.end()
		return g.passesVote(rpc, g.standing.mayCampaign(last), &raft.TimeoutNowResponse{RPCHeader: g.header()})
	case *raft.InstallSnapshotRequest:
		return g.passesSnapshot(rpc, q)
	}
	return true
}

// passesSnapshot refuses a snapshot that arrives too late. The leader had already closed the connection of this
// snapshot, and this replica's log now has the snapshot's last entry. Raft would install the snapshot and remove all
// later entries from the log, although they may be acknowledged.
func (g *gate) passesSnapshot(rpc raft.RPC, q *raft.InstallSnapshotRequest) bool {
	err := g.standing.mayFollow(q.Term, false)
	late := err == nil && q.Term == g.raft.CurrentTerm() && g.has(q.LastLogIndex, q.LastLogTerm)
	if err == nil && !late {
		err = g.standing.adopt(q.LastLogIndex)
	}
	if err == nil && !late {
		return true
	}
	_, _ = io.Copy(io.Discard, rpc.Reader)
	rpc.Respond(&raft.InstallSnapshotResponse{RPCHeader: g.header(), Term: q.Term, Success: late}, err)
	return false
}

// has reports whether this replica has a log entry. The entry may be in the log, or in a snapshot that has taken its
// place.
func (g *gate) has(index, term uint64) bool {
	if index <= g.applier.index.Load() {
		return true // every snapshot of a leader contains all entries that are applied here
	}
	var l raft.Log
	return g.log.read(index, &l) == nil && l.Term == term
}

func (g *gate) header() raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(g.config.ID), Addr: []byte(g.config.ID)}
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
	g.config.Log.Warn("this replica takes no part in the election", zap.Error(why))
	return why
}

// passesEntries reports whether Raft may see a message with entries. Raft may see it if this replica may follow the
// leader, and if the entries match their checksums (seals). Otherwise passesEntries answers with a refusal.
func (g *gate) passesEntries(rpc raft.RPC, q *raft.AppendEntriesRequest) bool {
	refuse := func(err error) bool {
		rpc.Respond(&raft.AppendEntriesResponse{RPCHeader: g.header()}, err)
		return false
	}
	if err := g.standing.stays(); err != nil {
		return refuse(err)
	}
	if q.Term < g.raft.CurrentTerm() { // Raft's answer tells the leader the later term
		return true
	}
	if err := g.standing.mayFollow(q.Term, heartbeat(q)); err != nil {
		return refuse(err)
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

// heartbeat reports whether a request is a heartbeat. A heartbeat has no entries, and names no entry before them.
func heartbeat(q *raft.AppendEntriesRequest) bool { return q.PrevLogEntry == 0 && len(q.Entries) == 0 }

// AppendEntries sends a heartbeat to a replica. It sends entries only to a replica that knows this leader's log. While
// this leader's disk hangs, nothing is sent.
func (g *gate) AppendEntries(id raft.ServerID, to raft.ServerAddress, q *raft.AppendEntriesRequest, p *raft.AppendEntriesResponse) error {
	if !g.open.Load() {
		return errNotRunning
	}
	if err := g.hangs(); err != nil {
		return err
	}
	if heartbeat(q) {
		return g.below.AppendEntries(id, to, q, p)
	}
	if err := g.introduce(id, to, q.Term); err != nil {
		return err
	}
	err := g.below.AppendEntries(id, to, q, p)
	if err != nil {
		g.introduced.Delete(id) // the replica's process may have restarted
		return err
	}
	g.acknowledged(string(id), q, p)
	return nil
}

// acknowledged records that a replica has the entries of a request, and all entries before them, on its disk. The
// answer to an AppendEntries request says this; the answer to a heartbeat does not.
func (g *gate) acknowledged(id string, q *raft.AppendEntriesRequest, p *raft.AppendEntriesResponse) {
	if o := g.leadership.current.Load(); o != nil && o.term == q.Term && p.Success {
		g.standing.noteAck(id, q.PrevLogEntry+uint64(len(q.Entries)))
	}
}

// As the leader, this replica sends a notice to each other replica twice a second. notice returns it. It says what the
// leader knows about the disks, and whether the other replica has a vote.
func (g *gate) notice(id string) leaderNotice {
	leads, committed := g.leadership.current.Load() != nil, g.raft.CommitIndex()
	if leads {
		g.standing.noteFloors(committed)
	}
	r := g.standing.tells()
	_, out := g.catching.Load(id)
	l := leaderNotice{Known: r.Known, Committed: r.Committed, Out: out, Vote: !out, Spare: leads && g.standing.spare.Load()}
	if leads {
		l.Committed = max(l.Committed, committed)
	}
	return l
}

// RequestVote asks for a vote, after it has asked whether the other replica knows this replica's disk.
func (g *gate) RequestVote(id raft.ServerID, to raft.ServerAddress, q *raft.RequestVoteRequest, p *raft.RequestVoteResponse) error {
	if err := g.mayAsk(id, to, q.LastLogIndex); err != nil {
		return err
	}
	return g.below.RequestVote(id, to, q, p)
}

// RequestPreVote asks another replica whether it would vote for this replica.
func (g *gate) RequestPreVote(id raft.ServerID, to raft.ServerAddress, q *raft.RequestPreVoteRequest, p *raft.RequestPreVoteResponse) error {
	if err := g.mayAsk(id, to, q.LastLogIndex); err != nil {
		return err
	}
	return g.below.RequestPreVote(id, to, q, p)
}

// mayAsk returns an error if this replica may not ask another replica for its vote. The argument `last` is the index of
// the last entry in this replica's log.
func (g *gate) mayAsk(id raft.ServerID, to raft.ServerAddress, last uint64) error {
	if !g.open.Load() {
		return errNotRunning
	}
	if err := g.standing.mayCampaign(last); err != nil {
		return g.refuse(err)
	}
	return g.knows(id, to)
}
