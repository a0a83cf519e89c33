package accounts

import (
	"testing"

	"github.com/candor-grid/candor/messages"
)

const credit = messages.Credit

func someFacts() map[messages.JobID]jobFacts {
	return map[messages.JobID]jobFacts{103: {"flights", "main", "proportional"}}
}

// entriesOfEveryKind has an entry for each reason for which credits move, and the words for it.
var entriesOfEveryKind = []struct {
	entry messages.Entry
	words string
}{
	{messages.Entry{Transfer: "$grant/ops/1", By: "ops", Change: 5, Reason: "spring"}, "granted by ops: spring"},
	{messages.Entry{Transfer: "$withdraw/ops/1", By: "ops", Change: -5, Reason: "too much"}, "withdrawn by ops: too much"},
	{messages.Entry{Transfer: "$correct/x", Pending: "x", By: "ops", Change: 5, Reason: "fault"}, "correction by ops of x: fault"},
	{messages.Entry{Transfer: "$return/9", Pending: "$grant/ops/1", Change: -5, Reason: "the grant expired"}, "unspent of grant ops/1: the grant expired"},
	{messages.Entry{Transfer: "$pay/bob/1", By: "bob", Change: 5}, "received from bob"},
	{messages.Entry{Transfer: "$pay/bob/1", By: "bob", Change: -5}, "transferred by bob"},
	{messages.Entry{Transfer: "grant/ops/1", Change: 5, Reason: "externality of job 9"}, "externality of job 9"},
	{messages.Entry{Kind: messages.Hold, Hold: 2 * credit, Member: "bob", Job: 103}, "set aside for bob: flights on main (proportional)"},
	{messages.Entry{Kind: messages.Hold, Hold: 2 * credit, Job: 103, Reason: "budget of job flights (market main)"}, "set aside: budget of job flights (market main)"},
	{messages.Entry{Kind: messages.Post, Hold: -3 * credit, Change: -2 * credit, Job: 103, Reason: "late"}, "2 of 3 charged, 1 came back: flights on main (proportional): late"},
	{messages.Entry{Kind: messages.Post, Hold: -3 * credit, Change: -3 * credit}, "all 3 charged"},
	{messages.Entry{Kind: messages.Post, Hold: -3 * credit, Change: -3 * credit, Reason: "pay confirmed by site east: "}, "all 3 charged: pay confirmed by site east"},
	{messages.Entry{Kind: messages.Post, Hold: -3 * credit}, "nothing charged, 3 came back"},
	{messages.Entry{Kind: messages.Post, Change: 2 * credit}, "received"},
	{messages.Entry{Kind: messages.Void, Hold: -3 * credit, By: "$auctioneer", Reason: "cancelled"}, "nothing charged, 3 came back: cancelled"},
	{messages.Entry{Kind: messages.Void, Hold: -3 * credit, Reason: "the hold expired"}, "3 came back: the hold expired"},
}

func TestEveryMovementHasAReason(t *testing.T) {
	for _, tc := range entriesOfEveryKind {
		if got := inWords(tc.entry, someFacts()); got != tc.words {
			t.Errorf("%+v: %q, want %q", tc.entry, got, tc.words)
		}
	}
}
