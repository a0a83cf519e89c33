package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/cmd/lab/internal/netlab"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
)

// answerWithin is used as two limits. The liar waits this long for an answer. If a request is refused for a temporary
// reason, the liar repeats the request for this long.
const answerWithin = 3 * time.Second

func (l *liar) send(ctx context.Context, signed clearingmsg.SignedInstructions) (r clearingmsg.SignedReceipt, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	return bus.Call[clearingmsg.SignedReceipt](ctx, l.Bus, l.Subject(messages.Bank, clearingmsg.VerbInstruct), signed)
}

// This method signs and sends instructions with a first number and a running total that the liar chooses.
func (l *liar) says(ctx context.Context, first uint64, known clearingmsg.RunningTotal, list ...clearingmsg.Instruction) ([]money.TransferResult, error) {
	signed, err := clearing.SignInstructions(l.Key, clearingmsg.Instructions{From: l.Name, To: l.To, First: first, List: list, Known: known, At: messages.TimeOf(time.Now())})
	if err != nil {
		return nil, err
	}
	l.said = append(l.said, signed)
	r, err := l.send(ctx, signed)
	if err == nil && r.Receipt.Total.Number > l.in.Number {
		l.in = r.Receipt.Total
	}
	return r.Receipt.Outcomes, err
}

// This method sends instructions with the numbers and the running total that the victim expects.
func (l *liar) next(ctx context.Context, list ...clearingmsg.Instruction) ([]money.TransferResult, error) {
	return l.says(ctx, l.in.Number+1, l.in, list...)
}

// refused checks that the liar's refused instructions moved no credits. The argument `outcomes` has the results of
// these instructions.
func (l *liar) refused(what string, outcomes []money.TransferResult, err error) {
	for _, o := range outcomes {
		if err == nil && o.Amount != 0 {
			l.breaks("%s %s, and this moved %v", l.Name, what, o.Amount)
		}
	}
}

func pays(amount messages.Credits) clearingmsg.Instruction {
	return clearingmsg.Instruction{Kind: clearingmsg.InstructPay, Account: accomplice, Amount: amount}
}

// overcharges is a lie of the site that cheats. It charges a user's authorisation with more than its amount. Then it
// charges the full amount twice. It also charges authorisations that users gave to other sites.
func (l *liar) overcharges(ctx context.Context) error {
	l.mu.Lock()
	id := ""
	if l.trusted != nil {
		id = l.trusted.Authorisation.Authorisation.ID
	}
	l.mu.Unlock()
	if id == "" {
		return errors.New("no job came to it")
	}
	charge := func(id string, amount messages.Credits) clearingmsg.Instruction {
		return clearingmsg.Instruction{Kind: clearingmsg.InstructCharge, ID: id, Amount: amount}
	}
	outcomes, err := l.next(ctx, charge(id, 2*liarBudget))
	l.refused("charges more than was authorised", outcomes, err)
	if _, err = l.next(ctx, charge(id, liarBudget)); err != nil {
		return err
	}
	outcomes, err = l.next(ctx, charge(id, liarBudget))
	l.refused("charges twice", outcomes, err)
	outcomes, err = l.next(ctx, charge(clearingmsg.RemoteJobAuthorisation(2), messages.Credit), charge("alice/1", messages.Credit))
	l.refused("charges what it was not authorised to", outcomes, err)
	return nil
}

// settlesAlone repeats two steps. It pays the liar's accomplice until the debt reaches the liar's limit. Then it
// settles this debt in a cycle that only the liar has closed.
func (l *liar) settlesAlone(ctx context.Context) error {
	outcomes, err := l.next(ctx, pays(10*liarLimit))
	l.refused("pays ten times its limit", outcomes, err)
	for cycle := range uint64(12) {
		for _, amount := range []messages.Credits{liarLimit, liarLimit / 4, liarLimit / 16, messages.Credit} {
			if _, err := l.next(ctx, pays(amount)); err != nil {
				return err
			}
		}
		if _, err := l.next(ctx, clearingmsg.Instruction{Kind: clearingmsg.InstructSettle, Cycle: cycle + 1, Amount: 2 * liarLimit}); err != nil {
			return err
		}
	}
	return nil
}

// A user of each honest site pays these amounts to a user of the other honest site.
var remitted = []messages.Credits{3 * messages.Credit, 7 * messages.Credit}

// othersSettle lets users of the two honest sites pay each other. A cycle between these sites must be settled without
// the liar.
func (l *liar) othersSettle(ctx context.Context, all []*member) error {
	for i, m := range all {
		if _, err := m.Candor(ctx, users[2], "remit", users[2]+"@"+all[1-i].Name, remitted[i].String()); err != nil {
			return err
		}
	}
	if err := everyone(all, func(m *member) error { return l.paid(ctx, m) }); err != nil {
		return err
	}
	for _, m := range all {
		if _, err := ask[clearingmsg.SignedPosition](ctx, m, messages.Bank, clearingmsg.VerbClose, clearingmsg.CloseRequest{Cycle: 1}); err != nil {
			return err
		}
	}
	for _, command := range [][]string{{"peer", "list"}, {"peer", "list", "--json"}} {
		if err := l.prints(ctx, netlab.Operator, command...); err != nil {
			return err
		}
	}
	net, err := ask[clearingmsg.NettingReport](ctx, l.victim, messages.Bank, clearingmsg.VerbNet, clearingmsg.CycleRequest{})
	if err != nil || len(net.Payments) > 1 || slices.ContainsFunc(net.Positions, func(p clearingmsg.Position) bool { return p.Site == l.Name }) {
		l.breaks("the report of the cycle includes what %s says: %+v, %v", l.Name, net, err)
	}
	return everyone(all, func(m *member) error {
		return within(ctx, patience, func(ctx context.Context) error {
			p, err := ask[clearingmsg.SignedPosition](ctx, m, messages.Bank, clearingmsg.VerbClose, clearingmsg.CloseRequest{})
			if err != nil {
				return err
			}
			for _, leg := range p.Position.Legs {
				if leg.Peer != l.Name && leg.Final && leg.Paid+leg.Received >= remitted[1]-remitted[0] {
					return nil
				}
			}
			return fmt.Errorf("%s has not settled: %+v", m.Name, p.Position.Legs)
		})
	})
}

func (l *liar) paid(ctx context.Context, m *member) error {
	return within(ctx, patience, func(ctx context.Context) error {
		peers, err := ask[clearingmsg.PeersReply](ctx, m, messages.Bank, clearingmsg.VerbPeers, messages.Empty{})
		for _, p := range peers.Peers {
			if volume := p.Sent.Volume + p.Received.Volume; err == nil && p.Peer != l.Name && volume < remitted[0]+remitted[1] {
				err = fmt.Errorf("%s and %s have exchanged only %v", m.Name, p.Peer, volume)
			}
		}
		return err
	})
}

// repeats sends every message of the liar again, the latest first.
func (l *liar) repeats(ctx context.Context) error {
	before, err := l.had(ctx)
	if err != nil {
		return err
	}
	for _, signed := range slices.Backward(l.said) {
		_, _ = l.send(ctx, signed) // the answer is a refusal or the first answer
	}
	if now, err := l.had(ctx); err != nil || now != before {
		l.breaks("%s sent its messages again, and %s now has %v instead of %v: %v", l.Name, accomplice, now, before, err)
	}
	return nil
}

// The liar sends instructions with wrong numbers, and instructions whose running totals differ from the victim's books.
// The first instruction with a wrong total and a valid signature must start a dispute.
func (l *liar) forges(ctx context.Context) error {
	ahead := l.in
	ahead.Number += 7
	owed := l.in
	owed.Owed -= liarLimit
	for what, say := range map[string]func() ([]money.TransferResult, error){
		"leaves numbers out":                func() ([]money.TransferResult, error) { return l.says(ctx, l.in.Number+1000, l.in, pays(1)) },
		"uses the number 2^63":              func() ([]money.TransferResult, error) { return l.says(ctx, 1<<63, l.in, pays(1)) },
		"uses the number 0":                 func() ([]money.TransferResult, error) { return l.says(ctx, 0, l.in, pays(1)) },
		"has an answer that nobody gave":    func() ([]money.TransferResult, error) { return l.says(ctx, l.in.Number+1, ahead, pays(1)) },
		"has another total":                 func() ([]money.TransferResult, error) { return l.says(ctx, l.in.Number+1, owed, pays(1)) },
		"gives an old number other content": func() ([]money.TransferResult, error) { return l.says(ctx, l.in.Number, l.in, pays(2), pays(2)) },
	} {
		outcomes, err := say()
		l.refused(what, outcomes, err)
		if err == nil && len(outcomes) == 0 {
			l.breaks("%s %s, but is not refused", l.Name, what)
		}
	}
	p, err := l.standing(ctx)
	if err == nil && p.Dispute == "" {
		l.breaks("%s has recorded no dispute with %s", l.victim.Name, l.Name)
	}
	outcomes, sent := l.next(ctx, pays(1), clearingmsg.Instruction{Kind: clearingmsg.InstructSettle, Cycle: 30, Amount: liarLimit})
	l.refused("pays and settles during a dispute", outcomes, sent)
	return err
}

// signsOld makes the victim's operator replace the liar's key, and later set other terms. Messages with the old key
// must always be refused.
func (l *liar) signsOld(ctx context.Context) error {
	old := l.Key
	fresh, err := nkeys.CreateAccount()
	if err != nil {
		return err
	}
	l.Key = fresh
	if err := errors.Join(l.terms(ctx, true), l.terms(ctx, false)); err != nil {
		return err
	}
	l.Key = old
	if outcomes, err := l.next(ctx, pays(1)); err == nil {
		l.breaks("%s signed with a retired key, but got an answer: %+v", l.Name, outcomes)
	}
	if err := l.terms(ctx, true); messages.KindOf(err) != messages.Invalid {
		l.breaks("the retired key of %s is trusted again: %v", l.Name, err)
	}
	l.Key = fresh
	return nil
}

// leaves announces that the liar ends its trade with the victim, and then sends a payment and a settlement once more.
func (l *liar) leaves(ctx context.Context) error {
	if _, err := l.next(ctx, clearingmsg.Instruction{Kind: clearingmsg.InstructPart}); err != nil {
		return err
	}
	outcomes, err := l.next(ctx, pays(2*liarLimit), clearingmsg.Instruction{Kind: clearingmsg.InstructSettle, Cycle: 31, Amount: liarLimit})
	l.refused("pays and settles after it has parted", outcomes, err)
	return nil
}
