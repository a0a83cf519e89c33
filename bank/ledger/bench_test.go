package ledger

import (
	"fmt"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/wire"
)

// benchLedger returns a ledger with accounts that have many credits each.
func benchLedger(b *testing.B, accounts int) (*Ledger, []messages.Name) {
	l := New()
	names := make([]messages.Name, accounts)
	for i := range names {
		names[i] = fmt.Sprintf("user-%d", i)
		c := Command{Verb: Grant, At: 1, By: "ops", Grant: money.GrantRequest{Key: names[i], Account: names[i], Amount: 1_000_000 * messages.Credit}}
		if r := l.Apply(c.Encode()); r.Error != nil {
			b.Fatal(r.Error)
		}
	}
	return l, names
}

// benchBatch returns n transfers as jobs cause them: a hold with an expiry, then a charge of a part of it.
func benchBatch(batch, n int, names []messages.Name) []money.Transfer {
	ts := make([]money.Transfer, 0, n)
	for i := 0; i < n; i += 2 {
		name := names[(batch*n+i)*7919%len(names)]
		id := fmt.Sprintf("%s/%08d-%04d/hold", name, batch, i)
		ts = append(ts,
			money.Transfer{ID: id, Kind: money.Hold, Debit: name, Member: name, Amount: messages.Credit, Expires: messages.Time(1 << 50), Job: messages.JobID(i)},
			money.Transfer{ID: id + "/charge", Kind: money.Post, Pending: id, Credit: money.SiteAccount, Amount: messages.Credit / 2, Job: messages.JobID(i), Reason: "budget of a completed job"})
	}
	return ts
}

// BenchmarkApply measures the time of one transfer, with the time to decode it.
func BenchmarkApply(b *testing.B) {
	for _, size := range []int{2, 100, 1000} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			l, names := benchLedger(b, 10_000)
			commands := make([][]byte, (b.N+size-1)/size)
			for i := range commands {
				c := Command{Verb: Transfers, At: 2, By: "$auctioneer", Rank: Service, Transfers: benchBatch(i, size, names)}
				commands[i] = c.Encode()
			}
			b.ReportAllocs()
			b.ResetTimer()
			for _, c := range commands {
				if r := l.Apply(c); r.Error != nil || r.Transfers[size-1].Error != nil {
					b.Fatal(r)
				}
			}
		})
	}
}

// BenchmarkDecode measures the time to decode one transfer of a batch. It measures the ledger's encoding, and the
// encoding of messages.
func BenchmarkDecode(b *testing.B) {
	names := []messages.Name{"alice", "bob"}
	ts := benchBatch(0, 1000, names)
	c := Command{Verb: Transfers, At: 2, By: "$auctioneer", Rank: Service, Transfers: ts}
	b.Run("ledger", func(b *testing.B) {
		data := c.Encode()
		b.ReportAllocs()
		for i := 0; i < b.N; i += len(ts) {
			var d Command
			if err := d.decode(data, ts); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("wire", func(b *testing.B) {
		data, err := wire.Marshal(money.TransferRequest{Transfers: ts}, wire.Msgpack)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for i := 0; i < b.N; i += len(ts) {
			var d money.TransferRequest
			if err := wire.Unmarshal(data, wire.Msgpack, &d); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkImage measures capture, audit and restore on 200,000 transfers. Capture blocks the ledger, and audit does
// not.
func BenchmarkImage(b *testing.B) {
	l, names := benchLedger(b, 10_000)
	for i := range 200 {
		c := Command{Verb: Transfers, At: 2, By: "$auctioneer", Rank: Service, Transfers: benchBatch(i, 1000, names)}
		l.Apply(c.Encode())
	}
	image := encodeImage(b, l)
	b.Run("capture", func(b *testing.B) {
		for range b.N {
			l.Capture()
		}
	})
	b.Run("audit", func(b *testing.B) {
		for range b.N {
			if books := l.Capture().Audit(); !books.Balanced {
				b.Fatal(books.Message)
			}
		}
	})
	b.Run("restore", func(b *testing.B) {
		b.ReportMetric(float64(len(image))/210_000, "bytes/record")
		for range b.N {
			restore(b, image)
		}
	})
	b.Run("statement", func(b *testing.B) {
		for range b.N {
			if _, err := l.Statement(money.StatementRequest{Account: money.SiteAccount, After: 150_000}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
