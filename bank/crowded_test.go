package bank

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/money"
)

// crowded is a mailbox whose disk has room for a limited number of commands.
type crowded struct {
	mailbox.Mailbox
	room atomic.Int64
}

func (c *crowded) Propose(ctx context.Context, command []byte) (any, error) {
	if c.room.Add(-1) < 0 {
		return nil, mailbox.ErrNoSpace
	}
	return c.Mailbox.Propose(ctx, command)
}

// TestTransfersOnAFullDisk: the disk has no room for a later command of a request. The error must not say that the
// request was refused, because earlier commands were carried out.
func TestTransfersOnAFullDisk(t *testing.T) {
	var disk *crowded
	b := startWith(t, func(config *Config) {
		open := config.Open
		config.Open = func(m mailbox.Machine) (mailbox.Mailbox, error) {
			box, err := open(m)
			disk = &crowded{Mailbox: box}
			disk.room.Store(1000)
			return disk, err
		}
		config.ExpiryInterval = messages.Duration(1 << 40) // so long that the bank proposes nothing by itself during the test
	})
	b.grant("g", "ada", 600)
	list := money.TransferRequest{}
	for i := range 600 {
		list.Transfers = append(list.Transfers, money.Transfer{
			ID: strings.Repeat("x", 200) + string(rune('a'+i/26)) + string(rune('a'+i%26)), Debit: "ada", Credit: money.SiteAccount, Amount: 1, Reason: strings.Repeat("r", 100),
		})
	}
	if pieces, err := split(list.Transfers); err != nil || len(pieces) < 2 {
		t.Fatalf("%d pieces, %v", len(pieces), err)
	}
	disk.room.Store(0)
	b.refused(messages.Exhausted, "$auctioneer", messages.VerbTransfer, list)
	disk.room.Store(1)
	b.refused(messages.Unknown, "$auctioneer", messages.VerbTransfer, list)
	disk.room.Store(1000)
	for _, r := range b.transfer(list.Transfers...) {
		if r.Error != nil || r.Amount != 1 {
			t.Fatalf("asked again: %+v", r)
		}
	}
	if a := must[money.AccountReply](b, "ada", messages.VerbAccount, money.AccountRequest{}); a.Balance != 0 {
		t.Errorf("%v credits are left", a.Balance)
	}
}
