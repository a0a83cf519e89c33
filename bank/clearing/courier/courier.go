package courier

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// serviceVersion is that of the requests and replies, not of the program.
const serviceVersion = "1.0.0"

// Courier is the clearing's shell. Make one with New.
type Courier struct {
	config  Config
	metrics *metrics

	mu       sync.Mutex
	news     chan struct{} // closed and replaced when there may be something to send
	failures map[messages.Name]failure
	screened map[clearing.Refusal]uint64 // refused before they reached the log
}

// failure is how often a peer was sent something in vain since it last
// answered, and why.
type failure struct {
	tries int
	why   string
}

// New returns a courier that serves and sends nothing yet.
func New(c Config) (*Courier, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.defaults()
	courier := &Courier{config: c, metrics: newMetrics(), news: make(chan struct{}),
		failures: map[messages.Name]failure{}, screened: map[clearing.Refusal]uint64{}}
	if err := courier.metrics.register(c.Metrics, c.Host); err != nil {
		return nil, fmt.Errorf("courier of %s: metrics: %w", c.Site, err)
	}
	return courier, nil
}

// Close takes the metrics back; Run must have returned.
func (c *Courier) Close() error { return c.metrics.unregister() }

// Services is what the bank's leader serves for as long as it leads.
func (c *Courier) Services() []bus.Service {
	return []bus.Service{{
		Name: "candor-clearing-commands", Version: serviceVersion, Description: "Settlement of site " + c.config.Site + " with other sites",
		Endpoints: []bus.Endpoint{
			endpoint(c, messages.VerbAuthorise, c.authorise),
			endpoint(c, messages.VerbRevoke, c.revoke),
			endpoint(c, messages.VerbRemit, c.remit),
			endpoint(c, messages.VerbAccept, c.accept),
			endpoint(c, messages.VerbCharge, c.charge),
			endpoint(c, messages.VerbPeer, c.peer),
			endpoint(c, messages.VerbReserve, c.reserve),
			endpoint(c, messages.VerbClose, c.close),
			endpoint(c, messages.VerbInstruct, c.instruct),
		},
	}, {
		Name: "candor-clearing-queries", Version: serviceVersion, Description: "How site " + c.config.Site + " stands with other sites", Discoverable: true,
		Endpoints: []bus.Endpoint{
			endpoint(c, messages.VerbPeers, c.peers),
			endpoint(c, messages.VerbLines, c.lines),
			endpoint(c, messages.VerbReconcile, c.reconcile),
			endpoint(c, messages.VerbNet, c.net),
			endpoint(c, messages.VerbPosition, c.position),
		},
	}}
}

func endpoint[Req, Rep any](c *Courier, verb string, f func(context.Context, messages.Name, Req) (Rep, error)) bus.Endpoint {
	return bus.Endpoint{Name: verb, Subject: messages.Subject(c.config.Site, messages.Bank, verb, "*"), Handle: bus.Handle(verb, f)}
}

// submit screens a command and proposes it. What is refused is counted.
func (c *Courier) submit(ctx context.Context, command clearing.Command) (clearing.Result, error) {
	if err := c.screen(&command); err != nil {
		return clearing.Result{}, err
	}
	return c.propose(ctx, command)
}

// screen refuses what shows without the books, so that it never reaches the log.
func (c *Courier) screen(command *clearing.Command) error {
	var refused *clearing.Rejected
	c.config.Host.Read(func(s *clearing.State) { refused = s.Screen(command) })
	if refused != nil {
		return c.refuse(refused)
	}
	return nil
}

// refuse counts what is refused outside the log.
func (c *Courier) refuse(r *clearing.Rejected) error {
	c.metrics.refused.WithLabelValues(r.Reason.String()).Inc()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.screened[r.Reason]++
	return r.Err
}

// propose commits a command that was screened.
func (c *Courier) propose(ctx context.Context, command clearing.Command) (clearing.Result, error) {
	command.At, command.Asked = c.config.Clock(), bus.Asked(ctx)
	r, err := c.config.Host.Propose(ctx, command)
	if err != nil {
		return clearing.Result{}, err
	}
	c.Wake()
	if r.Error != nil {
		c.metrics.refused.WithLabelValues(r.Refused.String()).Inc()
		return clearing.Result{}, r.Error
	}
	return r, nil
}

func (c *Courier) authorise(ctx context.Context, caller messages.Name, r messages.AuthoriseRequest) (messages.SignedAuthorisation, error) {
	if r.Member != "" && r.Member != caller {
		if err := c.allow(caller, c.config.Service, "set aside credits on the word of others"); err != nil {
			return messages.SignedAuthorisation{}, err
		}
	}
	result, err := c.submit(ctx, clearing.Command{By: caller, Authorise: &r})
	if err != nil {
		return messages.SignedAuthorisation{}, err
	}
	return clearing.SignAuthorisation(c.config.Signer, *result.Authorisation)
}

// answer submits a command that is answered with the number of an instruction.
func (c *Courier) answer(ctx context.Context, command clearing.Command) (messages.ClearingReply, error) {
	result, err := c.submit(ctx, command)
	if err != nil {
		return messages.ClearingReply{}, err
	}
	return *result.Answer, nil
}

func (c *Courier) revoke(ctx context.Context, caller messages.Name, r messages.RevokeRequest) (messages.ClearingReply, error) {
	return c.answer(ctx, clearing.Command{By: caller, Revoke: &r})
}

func (c *Courier) remit(ctx context.Context, caller messages.Name, r messages.RemitRequest) (messages.ClearingReply, error) {
	return c.answer(ctx, clearing.Command{By: caller, Remit: &r})
}

func (c *Courier) accept(ctx context.Context, caller messages.Name, r messages.AcceptRequest) (messages.ClearingReply, error) {
	if err := c.allow(caller, c.config.Service, "accept authorisations"); err != nil {
		return messages.ClearingReply{}, err
	}
	if least := c.config.LeastVisit; r.Authorisation.Authorisation.Amount < least {
		return messages.ClearingReply{}, messages.Errorf(messages.Insufficient, "authorisation: is of %v credits, and a job of another site must be authorised %v, at least: give it a larger budget", r.Authorisation.Authorisation.Amount, least)
	}
	return c.answer(ctx, clearing.Command{By: caller, Accept: &r})
}

func (c *Courier) charge(ctx context.Context, caller messages.Name, r messages.ChargeRequest) (messages.ClearingReply, error) {
	if err := c.allow(caller, c.config.Service, "charge authorisations"); err != nil {
		return messages.ClearingReply{}, err
	}
	return c.answer(ctx, clearing.Command{By: caller, Charge: &r})
}

func (c *Courier) peer(ctx context.Context, caller messages.Name, r messages.PeerRequest) (messages.PeerReply, error) {
	if err := c.allow(caller, c.config.Operator, "set the terms of peers"); err != nil {
		return messages.PeerReply{}, err
	}
	for i, key := range r.Keys {
		if !nkeys.IsValidPublicKey(key) {
			return messages.PeerReply{}, messages.Errorf(messages.Invalid, "keys[%d]: is no public nkey; take the one that the peer's operator is shown by \"candor peer list\"", i)
		}
	}
	result, err := c.submit(ctx, clearing.Command{By: caller, Peer: &r})
	if err != nil {
		return messages.PeerReply{}, err
	}
	return *result.Peer, nil
}

func (c *Courier) reserve(ctx context.Context, caller messages.Name, r messages.ReserveRequest) (messages.AccountReply, error) {
	if err := c.allow(caller, c.config.Operator, "set the reserve"); err != nil {
		return messages.AccountReply{}, err
	}
	result, err := c.submit(ctx, clearing.Command{By: caller, Reserve: &r})
	if err != nil {
		return messages.AccountReply{}, err
	}
	return *result.Account, nil
}

func (c *Courier) close(ctx context.Context, caller messages.Name, r messages.CloseRequest) (messages.SignedPosition, error) {
	if err := c.allow(caller, c.config.Operator, "close cycles"); err != nil {
		return messages.SignedPosition{}, err
	}
	result, err := c.submit(ctx, clearing.Command{By: caller, Close: &r})
	if err != nil {
		return messages.SignedPosition{}, err
	}
	return clearing.SignPosition(c.config.Signer, *result.Position)
}

// instruct carries out what a peer's bank asks for. The caller must be the
// bank that signed.
func (c *Courier) instruct(ctx context.Context, caller messages.Name, r messages.SignedInstructions) (messages.SignedReceipt, error) {
	if caller != messages.ServiceIdentity(r.Instructions.From) {
		return messages.SignedReceipt{}, messages.Errorf(messages.PermissionDenied, "caller %q: only the bank of the site that the message is from may bring it", caller)
	}
	command := clearing.Command{By: caller, Instructions: &r}
	if err := c.screen(&command); err != nil {
		return messages.SignedReceipt{}, err
	}
	if again := c.answered(&r.Instructions); again != nil {
		return clearing.SignReceipt(c.config.Signer, *again)
	}
	result, err := c.propose(ctx, command)
	if err != nil {
		return messages.SignedReceipt{}, err
	}
	return clearing.SignReceipt(c.config.Signer, *result.Receipt)
}

// answered looks for the receipt of a message that was carried out before. It
// needs no leadership: what was committed does not change.
func (c *Courier) answered(m *messages.Instructions) (receipt *messages.Receipt) {
	var ok bool
	c.config.Host.Read(func(s *clearing.State) { receipt, ok = s.Answered(m) })
	if !ok {
		return nil
	}
	c.metrics.repeats.Inc()
	return receipt
}

func (c *Courier) peers(ctx context.Context, caller messages.Name, _ messages.Empty) (reply messages.PeersReply, err error) {
	if !c.config.Service(caller) {
		if err := c.allow(caller, c.config.Operator, "see how the site stands with others"); err != nil {
			return reply, err
		}
	}
	if err := c.config.Host.Verify(ctx); err != nil {
		return reply, err
	}
	c.config.Host.Read(func(s *clearing.State) { reply = s.Peers() })
	c.complete(&reply)
	reply.Key, err = c.config.Signer.PublicKey()
	return reply, err
}

// complete adds what only the replica that leads knows: what is retried, and
// what it refused before it reached the log.
func (c *Courier) complete(r *messages.PeersReply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range r.Peers {
		f := c.failures[r.Peers[i].Peer]
		r.Peers[i].Tries, r.Peers[i].Failure = f.tries, f.why
	}
	for reason := clearing.Malformed; reason < clearing.Reasons; reason++ {
		n := c.screened[reason]
		if n == 0 {
			continue
		}
		i := slices.IndexFunc(r.Refused, func(t messages.RefusalTally) bool { return t.Reason == reason.String() })
		if i < 0 {
			i = len(r.Refused)
			r.Refused = append(r.Refused, messages.RefusalTally{Reason: reason.String()})
		}
		r.Refused[i].Count += n
	}
}

// lines shows a peer's bank the books about itself, and no other.
func (c *Courier) lines(ctx context.Context, caller messages.Name, r messages.LinesRequest) (messages.SignedLines, error) {
	site, isBank := strings.CutPrefix(caller, "$")
	if !isBank {
		return messages.SignedLines{}, messages.Errorf(messages.PermissionDenied, "account %q may not see the books between banks: only the bank of the peer may", caller)
	}
	if err := c.config.Host.Verify(ctx); err != nil {
		return messages.SignedLines{}, err
	}
	var page messages.Lines
	var err error
	c.config.Host.Read(func(s *clearing.State) { page, err = s.Lines(site, r) })
	if err != nil {
		return messages.SignedLines{}, err
	}
	return clearing.SignLines(c.config.Signer, page)
}

func (c *Courier) allow(caller messages.Name, may func(messages.Name) bool, what string) error {
	if may(caller) {
		return nil
	}
	return messages.Errorf(messages.PermissionDenied, "account %q may not %s", caller, what)
}
