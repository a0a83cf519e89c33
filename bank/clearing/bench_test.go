package clearing

import (
	"fmt"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

// BenchmarkExchange measures one message with as many payments as fit, from the requests to the confirmations.
func BenchmarkExchange(b *testing.B) {
	east, west := newSide(b, "east"), newSide(b, "west")
	east.know(west, 1_000_000)
	west.know(east, 1_000_000)
	east.grant("ada", 1_000_000)
	west.grant("ada", 1)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		for range clearing.MaxInstructions {
			n++
			east.do(Command{By: "ada", Remit: &clearing.RemitRequest{Key: fmt.Sprint(n), Peer: "west", Payee: "ada", Amount: 1}})
		}
		east.exchange(west)
	}
	if balance, _ := west.state.money.owed(PeerAccount("east")); balance != -messages.Credits(n) {
		b.Fatalf("west is owed %v after %d payments of a microcredit", balance, n)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/payment")
}

func BenchmarkAccept(b *testing.B) {
	east, west := newSide(b, "east"), newSide(b, "west")
	east.know(west, 1_000_000)
	west.know(east, 1_000_000)
	east.grant("ada", 1_000_000)
	statements := make([]clearing.SignedAuthorisation, maxOwned)
	for i := range statements {
		statements[i] = east.authorise(west, fmt.Sprint(i), 1)
	}
	i := 0
	for b.Loop() {
		west.do(accepting(statements[i%len(statements)]))
		i++
	}
}
