package accounts

import (
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

const credit = messages.Credit

func someFacts() map[messages.JobID]jobFacts {
	return map[messages.JobID]jobFacts{103: {"flights", "main", "proportional"}}
}

// entriesOfEveryKind has an entry for each reason for which credits move, with the words that a statement must show.
var entriesOfEveryKind = []struct {
	entry money.Entry
	words string
}{
	{money.Entry{Transfer: "$grant/ops/1", By: "ops", Change: 5, Reason: "spring"}, "granted by ops: spring"},
	{money.Entry{Transfer: "$withdraw/ops/1", By: "ops", Change: -5, Reason: "too much"}, "withdrawn by ops: too much"},
	{money.Entry{Transfer: "$correct/x", Pending: "x", By: "ops", Change: 5, Reason: "fault"}, "correction by ops of x: fault"},
	{money.Entry{Transfer: "$return/9", Pending: "$grant/ops/1", Change: -5, Reason: "the grant expired"}, "unspent of grant ops/1: the grant expired"},
	{money.Entry{Transfer: "$pay/bob/1", By: "bob", Change: 5}, "received from bob"},
	{money.Entry{Transfer: "$pay/bob/1", By: "bob", Change: -5}, "transferred by bob"},
	{money.Entry{Transfer: "grant/ops/1", Change: 5, Reason: "externality of job 9"}, "externality of job 9"},
	{money.Entry{Kind: money.Hold, Hold: 2 * credit, Member: "bob", Job: 103}, "set aside for bob: flights on main (proportional)"},
	{money.Entry{Kind: money.Hold, Hold: 2 * credit, Job: 103, Reason: "budget of job flights (market main)"}, "set aside: budget of job flights (market main)"},
	{money.Entry{Kind: money.Post, Hold: -3 * credit, Change: -2 * credit, Job: 103, Reason: "late"}, "2 of 3 charged, 1 given back: flights on main (proportional): late"},
	{money.Entry{Kind: money.Post, Hold: -3 * credit, Change: -3 * credit}, "all 3 charged"},
	{money.Entry{Kind: money.Post, Hold: -3 * credit, Change: -3 * credit, Reason: "pay confirmed by site east: "}, "all 3 charged: pay confirmed by site east"},
	{money.Entry{Kind: money.Post, Hold: -3 * credit}, "nothing charged, 3 given back"},
	{money.Entry{Kind: money.Post, Change: 2 * credit}, "received"},
	{money.Entry{Kind: money.Void, Hold: -3 * credit, By: "$auctioneer", Reason: "cancelled"}, "nothing charged, 3 given back: cancelled"},
	{money.Entry{Kind: money.Void, Hold: -3 * credit, Reason: "the hold expired"}, "3 given back: the hold expired"},
}

func TestEveryMovementHasAReason(t *testing.T) {
	for _, tc := range entriesOfEveryKind {
		if got := inWords(tc.entry, someFacts()); got != tc.words {
			t.Errorf("%+v: %q, want %q", tc.entry, got, tc.words)
		}
	}
}
