package auctioneer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/mailbox"
)

// A leader must give up leadership if the bank has not answered for 2 s. Another replica may take over only if the bank
// has answered all of that replica's requests of the last 3 s.
func TestWhoLeadsNeedsTheBank(t *testing.T) {
	began := time.Now()
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	type request struct {
		sent, ended int // when the request was sent, and when it ended, in milliseconds
		answered    bool
	}
	for name, c := range map[string]struct {
		requests     []request
		now          int
		leads, takes bool // the replica may continue to lead; it may take over
	}{
		"nothing was asked":                     {nil, 0, true, true},
		"one answer":                            {[]request{{0, 1, true}}, 1, true, true},
		"one request without an answer":         {[]request{{0, 1, true}, {500, 1500, false}}, 1500, true, false},
		"none for a while":                      {[]request{{0, 1, true}, {500, 1500, false}, {1500, 2500, false}}, 2500, false, false},
		"a little less than that":               {[]request{{0, 1, true}, {500, 1500, false}, {1500, 2499, false}}, 2499, true, false},
		"refused at once, for a while":          {[]request{{0, 0, false}, {500, 500, false}, {1000, 1000, false}, {1500, 1500, false}, {2000, 2000, false}}, 2000, false, false},
		"the first answer after that":           {[]request{{0, 1000, false}, {1000, 2000, false}, {2000, 3000, false}, {3000, 3001, true}}, 3001, true, false},
		"another one without, counted anew":     {[]request{{0, 1000, false}, {1000, 1001, true}, {1500, 2500, false}}, 2500, true, false},
		"answers for a little less than steady": {[]request{{0, 1000, false}, {1000, 1001, true}, {3500, 3501, true}}, 3999, true, false},
		"answers for long enough":               {[]request{{0, 1000, false}, {1000, 1001, true}, {3500, 3501, true}}, 4000, true, true},
	} {
		var s bankSight
		for _, r := range c.requests {
			var err error
			if !r.answered {
				err = errors.New("no answer")
			}
			s = s.after(at(r.sent), at(r.ended), err)
		}
		if leads, takes := s.weak(at(c.now), true) == nil, s.weak(at(c.now), false) == nil; leads != c.leads || takes != c.takes {
			t.Errorf("%s: leads %v, want %v; takes the lead over %v, want %v", name, leads, c.leads, takes, c.takes)
		}
	}
}

// threefold is a mailbox that says that its group has three replicas.
type threefold struct{ mailbox.Mailbox }

func (m threefold) Status() mailbox.Status {
	s := m.Mailbox.Status()
	s.Replicas = []string{"a1", "a2", "a3"}
	return s
}

// A leader is weak until the bank answers again. A leader without other replicas is never weak.
func TestALeaderWithoutTheBankIsWeak(t *testing.T) {
	t.Parallel()
	f := startWith(t, behind(func(m mailbox.Mailbox) mailbox.Mailbox { return threefold{m} }))
	alone := start(t)
	await.Until(t, "the leader is to hand over: nobody answers for the bank", func() bool { return errors.Is(f.replica.Weak(), errBankAway) })
	if err := alone.replica.Weak(); err != nil || *alone.replica.bank.Load() != (bankSight{}) {
		t.Errorf("the only replica asks the bank: %v", err)
	}
	asked := make(chan messages.Name, 100)
	sub, err := f.net.Connect("$bank").Serve(bus.Service{Name: "bank-status", Version: "1.0.0", Endpoints: []bus.Endpoint{
		{Name: "status", Subject: messages.Subject("west", messages.Bank, messages.VerbStatus, "*"),
			Handle: bus.Handle("status", func(_ context.Context, caller messages.Name, _ messages.Empty) (messages.StatusReply, error) {
				if len(asked) < cap(asked) {
					asked <- caller
				}
				return messages.StatusReply{}, nil
			})}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Stop() }()
	await.Until(t, "the leader leads on: the bank answers", func() bool { return f.replica.Weak() == nil })
	if caller := <-asked; caller != "$auctioneer" {
		t.Errorf("the bank was asked by %s", caller)
	}
}
