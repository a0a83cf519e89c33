package mailbox

import (
	"errors"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
)

// succession elects another leader as soon as the detectors of a majority find that the
// leader has failed. Raft's own timeouts, which are longer, remain for everything else.
//
// A replica that doubts its leader asks the others, as Raft's pre-vote does, whether they
// do too. So a replica that alone does not hear the leader changes nothing.
type succession struct {
	*engine
	detector *detector
	gate     *gate
	stream   *stream
	asking   atomic.Bool // whether the leader's process has ended
}

// closedAgain is how long after its connections were closed a process is asked again
// whether it has ended.
var closedAgain = []time.Duration{0, 2 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond}

// closed looks, when a peer has closed a connection, whether the peer was the leader and
// its process has ended: nobody listens at its address then. A word that the leader had
// sent before may be read after that; so closed looks several times.
func (s *succession) closed(peer string) {
	if s.detector.follows().leader != peer || peer == s.config.ID || !s.asking.CompareAndSwap(false, true) {
		return
	}
	defer s.asking.Store(false)
	for _, pause := range closedAgain {
		select {
		case <-s.gone:
			return
		case <-time.After(pause):
		}
		last := s.detector.follows()
		if last.leader != peer {
			return
		}
		if s.refuses(peer) {
			s.detector.end(last)
		}
	}
}

// refuses reports whether nobody listens at the address of a replica.
func (s *succession) refuses(id string) bool {
	all := s.servers()
	i := slices.IndexFunc(all, func(v raft.Server) bool { return string(v.ID) == id })
	if i < 0 {
		return false
	}
	c, err := s.stream.Dial(all[i].Address, s.config.Timeout/2)
	if err == nil {
		_ = c.Close()
		return false
	}
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, errNotHere)
}

// alone reports whether nobody listens at the address of any other replica with a vote: there is
// none to hand the lead to, as where a whole site stops.
func (s *succession) alone() bool {
	return !slices.ContainsFunc(s.voters(), func(id string) bool { return id != s.config.ID && !s.refuses(id) })
}

// watch campaigns when the leader has failed, or when the replica has heard none since it
// was started and its turn has come.
func (s *succession) watch() {
	started, again := time.Now(), retryCampaign
	wait := s.turn()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		began := time.Now()
		select {
		case <-s.gone:
			return
		case <-s.detector.failing:
		case <-timer.C:
			if starved(time.Since(began)-wait, s.config.Timeout) {
				s.detector.forgive(time.Now())
			}
		}
		wait = s.detector.remains(time.Now())
		if s.detector.follows().leader == "" {
			wait = max(0, s.turn()-time.Since(started))
		}
		switch {
		case s.raft.State() != raft.Follower:
			wait = s.config.Timeout
		case wait > 0:
			again = retryCampaign
		default:
			s.campaign()
			wait, again = again, min(2*again, s.config.Timeout)
		}
		timer.Reset(max(wait, time.Millisecond))
	}
}

// turn is how long after its start a replica campaigns that has heard no leader. Each
// has its turn, in the order of their names, so that votes are not split.
func (s *succession) turn() time.Duration {
	before := 0
	for _, v := range s.servers() {
		if v.Suffrage == raft.Voter && string(v.ID) < s.config.ID {
			before++
		}
	}
	return min(time.Duration(1+before)*min(s.config.Timeout/5, mostTurn), s.config.Timeout)
}

// mostTurn bounds the turn of each replica.
const mostTurn = 400 * time.Millisecond

// retryCampaign is how long a replica waits at first before it asks again.
const retryCampaign = 10 * time.Millisecond

// campaign has Raft begin an election at once if a majority agrees, and no other election
// has begun meanwhile, as where the leader has given its lead to another.
func (s *succession) campaign() {
	last, term := s.detector.follows(), s.raft.CurrentTerm()
	if s.gate.mayCampaign() != nil || !s.detector.let(s.config.ID, false, time.Now()) || !s.agreed(last.leader) {
		return
	}
	if s.detector.follows() != last || s.raft.CurrentTerm() != term || !s.detector.let(s.config.ID, false, time.Now()) {
		return
	}
	if last.leader == "" {
		s.config.Log.Info("no leader was heard since the start; starting an election")
	} else {
		s.config.Log.Info("the leader has failed; starting an election", zap.String("leader", last.leader), zap.Duration("silent", time.Since(last.at)))
	}
	select {
	case s.gate.in <- raft.RPC{Command: &raft.TimeoutNowRequest{RPCHeader: s.gate.header()}, RespChan: make(chan raft.RPCResponse, 1)}:
	case <-s.gone:
	}
}

// agreed asks all but the leader, and reports whether a majority of the votes would be
// this replica's.
func (s *succession) agreed(leader string) bool {
	servers := slices.DeleteFunc(s.servers(), func(v raft.Server) bool { return v.Suffrage != raft.Voter })
	index, term := s.gate.end()
	q := &raft.RequestPreVoteRequest{RPCHeader: s.gate.header(), Term: s.raft.CurrentTerm() + 1, LastLogIndex: index, LastLogTerm: term}
	votes, answers, asked := 0, make(chan bool, len(servers)), 0
	for _, v := range servers {
		switch string(v.ID) {
		case s.config.ID:
			votes++
		case leader:
		default:
			asked++
			go func() {
				var p raft.RequestPreVoteResponse
				err := s.gate.knows(v.ID, v.Address)
				if err == nil {
					err = s.gate.ask(v.ID, v.Address, q, &p)
				}
				answers <- err == nil && p.Granted
			}()
		}
	}
	late := time.NewTimer(s.config.Timeout / 4)
	defer late.Stop()
	for ; asked > 0 && 2*votes <= len(servers); asked-- {
		select {
		case granted := <-answers:
			if granted {
				votes++
			}
		case <-late.C:
			return false
		case <-s.gone:
			return false
		}
	}
	return votes > 0 && 2*votes > len(servers)
}

var errNotHere = messages.Errorf(messages.Unavailable, "the replica does not run in this process")

// doubts reports whether this replica finds that the leader it follows has failed.
func (g *gate) doubts() bool {
	return g.raft.State() != raft.Leader && g.detector.remains(time.Now()) == 0
}

// preVote answers for Raft, which would keep to a leader for longer, whether a candidate
// may campaign. The doubted leader itself may not, since it may be able to ask and not to
// lead, unless its log is longer: then nobody here can win. A candidate in this replica's term
// may campaign, though the vote of the term may be given: in the next term it can have it. One
// in an earlier term is told the term.
func (g *gate) preVote(q *raft.RequestPreVoteRequest) *raft.RequestPreVoteResponse {
	index, term := g.end()
	shorter := q.LastLogTerm < term || q.LastLogTerm == term && q.LastLogIndex < index
	longer := q.LastLogTerm > term || q.LastLogTerm == term && q.LastLogIndex > index
	p := &raft.RequestPreVoteResponse{RPCHeader: g.header(), Term: max(q.Term, g.raft.CurrentTerm())}
	p.Granted = !shorter && (longer || string(q.ID) != g.detector.follows().leader) && q.Term == p.Term && slices.Contains(g.voters(), string(q.ID)) &&
		g.detector.let(string(q.ID), longer || string(q.ID) < g.config.ID, time.Now())
	return p
}
