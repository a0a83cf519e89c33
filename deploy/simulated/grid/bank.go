package grid

import (
	"strconv"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
)

// account is that of a user of the workload.
func account(user int) messages.Name { return "u" + strconv.Itoa(user) }

// open opens the users' accounts, with what all of their jobs can cost.
func (g *Grid) open() error {
	need := make([]messages.Credits, len(g.Work.Users))
	for i := range g.Bids {
		budget, ok := messages.RoundCredits(g.Bids[i].Budget)
		user := g.Work.Jobs[i].User
		if need[user] += budget; !ok || need[user] > messages.MaxCredits {
			return messages.Errorf(messages.Invalid, "job %d: budget: the budgets of its user's jobs come to more than %v credits: choose a smaller unit of value", g.Work.Jobs[i].Number, messages.MaxCredits)
		}
	}
	for user, amount := range need {
		if amount == 0 {
			continue
		}
		c := &ledger.Command{Verb: ledger.Grant, At: g.now, By: "operator", Grant: messages.GrantRequest{
			Key: "open/" + account(user), Account: account(user), Amount: amount, Reason: "the simulation begins"}}
		if r := g.bank.Apply(c.Encode()); r.Error != nil {
			return r.Error
		}
	}
	return nil
}

// transfer asks the bank, as the auctioneer.
func (g *Grid) transfer(t []messages.Transfer, answered func([]messages.TransferResult)) {
	g.call(auctioneerActor, bankActor, func() any {
		g.traffic.Transfers++
		c := &ledger.Command{Verb: ledger.Transfers, At: g.now, By: messages.ServiceIdentity(messages.Auctioneer), Rank: ledger.Service, Transfers: t}
		r := g.bank.Apply(c.Encode())
		if r.Error != nil {
			g.fail("the bank refused a request: %v", r.Error)
		}
		return r.Transfers
	}, func(reply any) {
		results := reply.([]messages.TransferResult)
		if len(results) == len(t) {
			answered(results)
		}
	})
}
