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
)

// Wake has the courier look for something to send. Its own requests wake it;
// others that change the clearing must.
func (c *Courier) Wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.news)
	c.news = make(chan struct{})
}

// awake is closed at the next Wake.
func (c *Courier) awake() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.news
}

// Run sends the peers what they have not answered, and lets expire what is
// due, until ctx ends. It is for the leader, whenever it leads.
func (c *Courier) Run(ctx context.Context) {
	var loops sync.WaitGroup
	defer loops.Wait()
	tick := time.NewTicker(c.config.Tick.Std())
	defer tick.Stop()
	attended := map[messages.Name]bool{}
	for {
		news := c.awake()
		for _, peer := range c.names() {
			if attended[peer] {
				continue
			}
			attended[peer] = true
			loops.Add(1)
			go func() {
				defer loops.Done()
				c.attend(ctx, peer)
			}()
		}
		select {
		case <-ctx.Done():
			return
		case <-news:
		case <-tick.C:
			c.expire(ctx)
		}
	}
}

func (c *Courier) names() (names []messages.Name) {
	c.config.Host.Read(func(s *clearing.State) { names = s.Names() })
	return names
}

// expire proposes the passing of time if something is due. What comes of it
// does not matter here: if it is still due, the next tick tries again.
func (c *Courier) expire(ctx context.Context) {
	var due messages.Time
	c.config.Host.Read(func(s *clearing.State) { due = s.Due() })
	if due == 0 || due > c.config.Clock() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.Attempt.Std())
	defer cancel()
	if _, err := c.submit(ctx, clearing.Command{}); err != nil {
		c.config.Log.Debug("authorisations that are due wait", zap.Error(err))
	}
}

// attend sends one peer what it has not answered. News does not shorten the
// wait after a failure: a busy site must not hammer a peer that is down. A wait
// lies between half of its bound and the bound.
func (c *Courier) attend(ctx context.Context, peer messages.Name) {
	waits := backoff.Backoff{First: c.config.FirstBackoff.Std(), Last: c.config.LastBackoff.Std()}
	failures := 0
	var told uint64 // the peer knows which outcomes are known, up to here
	for greeted := false; ctx.Err() == nil; {
		news := c.awake()
		m := c.outgoing(peer)
		if greeted && len(m.List) == 0 && m.Known.Number == told {
			select {
			case <-ctx.Done():
			case <-news:
			}
			continue
		}
		if err := c.exchange(ctx, m); err != nil {
			c.metrics.messages.WithLabelValues("again").Inc()
			c.failed(peer, err)
			c.config.Log.Debug("a peer's bank does not answer", zap.String("peer", peer), zap.Int("outstanding", len(m.List)), zap.Error(err))
			failures++
			pause(ctx, waits.Wait(failures, rand.Float64()/2))
			continue
		}
		c.metrics.messages.WithLabelValues("answered").Inc()
		c.failed(peer, nil)
		failures, told, greeted = 0, m.Known.Number, true
	}
}

// failed notes what a message came to; nil: it was answered.
func (c *Courier) failed(peer messages.Name, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		delete(c.failures, peer)
		return
	}
	c.failures[peer] = failure{c.failures[peer].tries + 1, messages.AsError("", err).Message}
}

func (c *Courier) outgoing(peer messages.Name) (m messages.Instructions) {
	c.config.Host.Read(func(s *clearing.State) { m, _ = s.Outgoing(peer, c.config.Clock()) })
	return m
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// exchange sends a message once, and takes the receipt.
func (c *Courier) exchange(ctx context.Context, m messages.Instructions) error {
	ctx, cancel := context.WithTimeout(ctx, c.config.Attempt.Std())
	defer cancel()
	signed, err := clearing.SignInstructions(c.config.Signer, m)
	if err != nil {
		return err
	}
	var receipt messages.SignedReceipt
	if err := c.ask(ctx, m.To, messages.VerbInstruct, &signed, &receipt); err != nil {
		return err
	}
	_, err = c.submit(ctx, clearing.Command{Receipt: &receipt})
	return err
}

// ask sends a peer's bank one request, once.
func (c *Courier) ask(ctx context.Context, peer messages.Name, verb string, request, reply any) error {
	payload, err := messages.Marshal(request, messages.Msgpack)
	if err != nil {
		return err
	}
	subject := messages.Subject(peer, messages.Bank, verb, messages.ServiceIdentity(c.config.Site))
	data, err := c.config.Bus.Request(ctx, subject, payload)
	if err != nil {
		return err
	}
	return messages.Unmarshal(data, messages.Detect(data, ""), reply)
}
