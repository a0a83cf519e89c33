package bank

import (
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// TestNewSiteIsNotDefinite: a new site opens its accounts after its start. A request about such an account may come
// earlier. Its error must say to wait, and the bank must not remember this answer, because it changes soon.
func TestNewSiteIsNotDefinite(t *testing.T) {
	b := startWith(t, func(c *Config) { c.Opening = []messages.Name{"ops", "ada"} })
	hold := money.TransferRequest{Transfers: []money.Transfer{{ID: "h", Kind: money.Hold, Debit: "ada", Member: "ada", Amount: 5, Expires: 1_000_000_000}}}
	b.refused(messages.Unavailable, "ada", messages.VerbAccount, money.AccountRequest{})
	b.refused(messages.Unavailable, "$auctioneer", messages.VerbTransfer, hold)
	b.refused(messages.NotFound, "bob", messages.VerbAccount, money.AccountRequest{})
	for _, name := range []messages.Name{"ops", "ada"} {
		must[money.AccountReply](b, "ops", messages.VerbGrant, money.GrantRequest{Key: name, Account: name, Amount: 10, Reason: "opening"})
	}
	if r := must[money.TransferReply](b, "$auctioneer", messages.VerbTransfer, hold); r.Results[0].Error != nil {
		t.Errorf("the same hold: %v", r.Results[0].Error)
	}
	if a := must[money.AccountReply](b, "ada", messages.VerbAccount, money.AccountRequest{}); a.Balance != 10 || a.Holds != 1 {
		t.Errorf("ada's account: %+v", a)
	}
}
