package grid

import (
	"strconv"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
)

// account is that of a user of the workload.
func account(user int) messages.Name { return "u" + strconv.Itoa(user) }

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
