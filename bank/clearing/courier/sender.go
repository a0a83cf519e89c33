package courier

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/backoff"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
)

type sender struct {
	config   *Config
	metrics  *metrics
	proposer *proposer
	peers    *peers

	mu       sync.Mutex
	failures map[messages.Name]failure
}

// failure has the number of failed messages to a peer since its last answer, and the last error.
type failure struct {
	tries int
	why   string
	since messages.Time // time of the first of these failures
}

// run starts the method attend for each peer, also for peers that are added later. If something has become due, it
// proposes a command that only sets the time.
func (s *sender) run(ctx context.Context) {
	var loops sync.WaitGroup
	defer loops.Wait()
	tick := time.NewTicker(s.config.Tick.Std())
	defer tick.Stop()
	attended := map[messages.Name]bool{}
	for {
		news := s.proposer.next()
		for _, peer := range s.peers.names() {
			if attended[peer] {
				continue
			}
			attended[peer] = true
			loops.Go(func() { s.attend(ctx, peer) })
		}
		select {
		case <-ctx.Done():
			return
		case <-news:
		case <-tick.C:
			s.expire(ctx)
		}
	}
}

// expire advances the time of the state if an authorisation or another item is due: it proposes an empty command, which
// carries the time. If the command fails, the next tick tries again.
func (s *sender) expire(ctx context.Context) {
	var due messages.Time
	s.config.Host.Read(func(state *clearing.State) { due = state.Due() })
	if due == 0 || due > s.config.Clock() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Attempt.Std())
	defer cancel()
	if _, err := s.proposer.submit(ctx, clearing.Command{}); err != nil {
		s.config.Log.Debug("authorisations are due, and time could not be advanced", zap.Error(err))
	}
}

// attend sends one peer the messages that it has not answered. After a failure attend waits, even for new messages: a
// peer that is down must not be overloaded. Each wait is random, between half of its maximum and the maximum.
func (s *sender) attend(ctx context.Context, peer messages.Name) {
	waits, failures := backoff.Backoff{First: s.config.FirstBackoff.Std(), Last: s.config.LastBackoff.Std()}, 0
	var told uint64 // the peer knows that this site has the outcomes up to this number
	for greeted := false; ctx.Err() == nil; {
		news := s.proposer.next()
		var m clearingmsg.Instructions
		var sends bool
		s.config.Host.Read(func(state *clearing.State) { m, sends = state.Outgoing(peer, s.config.Clock()) })
		if s.uncompared(peer) {
			err := s.peers.compare(ctx, peer)
			s.failed(peer, err)
			if err != nil {
				s.config.Log.Debug("the books with a peer could not be compared", zap.String("peer", peer), zap.Error(err))
				s.pause(ctx, s.config.LastBackoff.Std())
			}
			continue
		}
		if !sends || greeted && len(m.List) == 0 && m.Known.Number == told {
			greeted = s.idle(ctx, news) && sends
			continue
		}
		if err := s.exchange(ctx, m); err != nil {
			s.metrics.messages.WithLabelValues("again").Inc()
			s.failed(peer, err)
			s.suspend(ctx, peer)
			s.config.Log.Debug("a peer's bank does not answer", zap.String("peer", peer), zap.Int("outstanding", len(m.List)), zap.Error(err))
			failures++
			s.pause(ctx, waits.Wait(failures, rand.Float64()/2))
			continue
		}
		s.metrics.messages.WithLabelValues("answered").Inc()
		s.failed(peer, nil)
		failures, told, greeted = 0, m.Known.Number, true
	}
}

func (s *sender) uncompared(peer messages.Name) (is bool) {
	s.config.Host.Read(func(state *clearing.State) { is = state.Uncompared(peer) })
	return is
}

func (s *sender) pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// idle waits for new messages. It returns false when it is time to send a greeting. When there are new messages, or
// when ctx has ended, it returns true.
func (s *sender) idle(ctx context.Context, news <-chan struct{}) bool {
	ask := time.NewTimer(s.config.SilentAfter.Std() / 4)
	defer ask.Stop()
	select {
	case <-ctx.Done():
	case <-ask.C:
		return false
	case <-news:
	}
	return true
}

// suspend proposes a command that suspends a peer, if the peer has been silent for too long.
func (s *sender) suspend(ctx context.Context, peer messages.Name) {
	s.mu.Lock()
	since := s.failures[peer].since
	s.mu.Unlock()
	if s.config.Clock().Sub(since) < s.config.SilentAfter {
		return
	}
	open := false
	s.config.Host.Read(func(state *clearing.State) { open = state.Standing(peer) == clearingmsg.PeerOpen })
	if !open {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Attempt.Std())
	defer cancel()
	if _, err := s.proposer.submit(ctx, clearing.Command{Silent: peer}); err != nil {
		s.config.Log.Debug("a silent peer is not suspended yet", zap.String("peer", peer), zap.Error(err))
		return
	}
	s.config.Log.Warn("a peer is suspended, because its bank does not answer", zap.String("peer", peer), zap.Time("since", since.Std()))
}

// failed stores the failure of a message to a peer. With a nil err, the peer has answered, and the stored failures are
// removed.
func (s *sender) failed(peer messages.Name, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.failures, peer)
		return
	}
	f, known := s.failures[peer]
	if !known {
		f.since = s.config.Clock()
	}
	s.failures[peer] = failure{f.tries + 1, messages.Detail(err), f.since}
}

func (s *sender) addFailures(r *clearingmsg.PeersReply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range r.Peers {
		f := s.failures[r.Peers[i].Peer]
		r.Peers[i].Tries, r.Peers[i].Failure = f.tries, f.why
	}
}

func (s *sender) exchange(ctx context.Context, m clearingmsg.Instructions) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.Attempt.Std())
	defer cancel()
	signed, err := clearing.SignInstructions(s.config.Signer, m)
	if err != nil {
		return err
	}
	var receipt clearingmsg.SignedReceipt
	err = s.peers.ask(ctx, m.To, clearingmsg.VerbInstruct, &signed, &receipt)
	if err != nil {
		return err
	}
	return s.learn(ctx, len(m.List) > 0, &receipt)
}

// learn proposes the outcomes that a peer's receipt has. The argument `asked` is true if the message to the peer had
// instructions. If the receipt then has no new outcome, learn returns an error. The caller sends the message again
// later, as if the peer had not answered.
func (s *sender) learn(ctx context.Context, asked bool, receipt *clearingmsg.SignedReceipt) error {
	command := clearing.Command{Receipt: receipt}
	if err := s.proposer.screen(&command); err != nil {
		return err
	}
	outcomes, changes := 0, false
	refused := s.proposer.check(func(state *clearing.State) (err *clearing.Rejected) {
		if outcomes, changes, err = state.Learns(receipt); changes {
			return nil // the peer's message was refused, and the refusal is in the log
		}
		return err
	})
	if changes {
		if _, err := s.proposer.propose(ctx, command); err != nil {
			return err
		}
	}
	if refused == nil && asked && outcomes == 0 {
		return messages.Errorf(messages.Unavailable, "the bank of %s answered, but without a result for the request", receipt.Receipt.From)
	}
	return refused
}
