package ledger

import (
	"fmt"
	"slices"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

func TestStatement(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 100)
	b.grant("bob", 10)
	h := held("h", "ada", 30)
	h.Job, h.Reason, h.Expires = 7, "job 7", 2000
	b.do(h)
	b.do(extend("e", "h", 3000)) // an Extend moves no credits, so it makes no entry
	charge := post("c", "h", 20)
	charge.Reason = "10 minutes of cpu"
	b.do(charge)
	b.do(held("v", "ada", 5))
	w := void("w", "v")
	w.Job = 8 // the job is only known now
	b.do(w)
	b.do(posted("p", "bob", "ada", 4))
	l := held("l", "ada", 1)
	l.Expires = 1500
	b.do(l)
	b.at = 1500
	b.command(Command{Verb: Expire})
	b.refuse(messages.Insufficient, held("no", "ada", 500)) // a refused hold makes no entry

	s, err := b.Statement(money.StatementRequest{Account: "ada"})
	if err != nil || s.More || s.Opening != 0 {
		t.Fatalf("%+v %v", s, err)
	}
	want := []money.Entry{
		{Kind: money.Posted, Transfer: "$grant/ops/first ada", Other: "$issuer", Change: 100, Balance: 100, Reason: "allocation", At: 1000, By: "ops"},
		{Kind: money.Hold, Transfer: "h", Hold: 30, Balance: 100, Reserved: 30, Job: 7, Reason: "job 7", At: 1000, Member: "ada", By: "$auctioneer"},
		{Kind: money.Post, Transfer: "c", Other: "$site", Change: -20, Hold: -30, Balance: 80, Job: 7, Reason: "10 minutes of cpu", At: 1000, Pending: "h", Member: "ada", By: "$auctioneer"},
		{Kind: money.Hold, Transfer: "v", Hold: 5, Balance: 80, Reserved: 5, At: 1000, Job: 8, Member: "ada", By: "$auctioneer"},
		{Kind: money.Void, Transfer: "w", Hold: -5, Balance: 80, At: 1000, Job: 8, Pending: "v", Member: "ada", By: "$auctioneer"},
		{Kind: money.Posted, Transfer: "p", Other: "bob", Change: 4, Balance: 84, At: 1000, By: "$auctioneer"},
		{Kind: money.Hold, Transfer: "l", Hold: 1, Balance: 84, Reserved: 1, At: 1000, Member: "ada", By: "$auctioneer"},
		{Kind: money.Void, Transfer: "l", Hold: -1, Balance: 84, Reason: lapseReason, At: 1500, Member: "ada"},
	}
	if len(s.Entries) != len(want) {
		t.Fatalf("%d entries: %+v", len(s.Entries), s.Entries)
	}
	for i, e := range s.Entries {
		if want[i].Number = e.Number; e != want[i] {
			t.Errorf("entry %d: %+v\nwant %+v", i, e, want[i])
		}
	}
	site, _ := b.Statement(money.StatementRequest{Account: money.SiteAccount})
	if len(site.Entries) != 1 || site.Entries[0].Other != "ada" || site.Entries[0].Change != 20 {
		t.Errorf("the site's: %+v", site)
	}
}

// paged returns a ledger in which an account has one entry at each of the times 1001, 1002, …, 1250. The i-th entry
// has the amount i.
func paged(t *testing.T) *bed {
	b := newBed(t)
	b.grant("bob", 100_000)
	b.at = 1001
	b.grant("ada", 1)
	for i := 2; i <= 250; i++ {
		b.at++
		b.do(posted(fmt.Sprint(i), "bob", "ada", messages.Credits(i)))
	}
	return b
}

// TestStatementPages reads the whole history in pages of different sizes. Each page must begin with the balance at the
// end of the page before.
func TestStatementPages(t *testing.T) {
	b := paged(t)
	for _, limit := range []int{0, 1, 7, 249, 250, 251, MaxPage} {
		var balance messages.Credits
		q := money.StatementRequest{Account: "ada", Limit: limit}
		entries := 0
		for more := true; more; {
			s, err := b.Statement(q)
			if err != nil || s.Opening != balance {
				t.Fatalf("limit %d after %d: opening %v, want %v; %v", limit, q.After, s.Opening, balance, err)
			}
			for _, e := range s.Entries {
				balance += e.Change
				q.After = e.Number
			}
			entries += len(s.Entries)
			more = s.More
		}
		if entries != 250 || balance != 250*251/2 {
			t.Errorf("limit %d: %d entries come to %v", limit, entries, balance)
		}
	}
}

func TestStatementOfTimes(t *testing.T) {
	b := paged(t)
	for _, tc := range []struct {
		from, to messages.Time
		opening  messages.Credits
		entries  int
	}{
		{0, 0, 0, 250},
		{1001, 1002, 0, 1},
		{1003, 1005, 3, 2}, // entries 3 and 4
		{1251, 0, 250 * 251 / 2, 0},
		{0, 1001, 0, 0},
		{1200, 1100, 199 * 200 / 2, 0},
		{1240, 9999, 239 * 240 / 2, 11},
	} {
		s, err := b.Statement(money.StatementRequest{Account: "ada", From: tc.from, To: tc.to, Limit: MaxPage})
		if err != nil || s.Opening != tc.opening || len(s.Entries) != tc.entries || s.More {
			t.Errorf("[%d, %d): opening %v, %d entries, more %v, %v; want %v, %d", tc.from, tc.to, s.Opening, len(s.Entries), s.More, err, tc.opening, tc.entries)
		}
	}
}

func TestStatementRefusals(t *testing.T) {
	b := paged(t)
	for limit, want := range map[int]messages.Kind{-1: messages.TooLarge, MaxPage + 1: messages.TooLarge} {
		if _, err := b.Statement(money.StatementRequest{Account: "ada", Limit: limit}); messages.KindOf(err) != want {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
	if _, err := b.Statement(money.StatementRequest{Account: "nobody"}); messages.KindOf(err) != messages.NotFound {
		t.Errorf("nobody's: %v", err)
	}
}

// TestStatementOfTheNewest asks for the newest entries, and then for the entries before these, page by page. The pages
// must be the last entries of the whole statement, and lead back to its first entry.
func TestStatementOfTheNewest(t *testing.T) {
	b := paged(t)
	all, err := b.Statement(money.StatementRequest{Account: "ada", Limit: MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{1, 3, 249, 250, 251} {
		q := money.StatementRequest{Account: "ada", Limit: limit, Newest: true}
		end := len(all.Entries)
		for more := true; more; {
			s, err := b.Statement(q)
			if err != nil || len(s.Entries) == 0 {
				t.Fatalf("limit %d before %d: %+v %v", limit, q.Before, s, err)
			}
			from := max(0, end-limit)
			if !slices.Equal(s.Entries, all.Entries[from:end]) || s.More != (from > 0) || s.Opening != s.Entries[0].Balance-s.Entries[0].Change {
				t.Fatalf("limit %d before %d: %d entries from %d on, more %v, opening %v", limit, q.Before, len(s.Entries), s.Entries[0].Number, s.More, s.Opening)
			}
			end, more, q.Before = from, s.More, s.Entries[0].Number
		}
	}
	s, err := b.Statement(money.StatementRequest{Account: "ada", Limit: 2, Newest: true, To: all.Entries[9].At})
	if err != nil || len(s.Entries) != 2 || s.Entries[1].At >= all.Entries[9].At || !s.More {
		t.Errorf("before an instant: %+v %v", s, err)
	}
	s, err = b.Statement(money.StatementRequest{Account: "ada", Newest: true, From: all.Entries[249].At + 1})
	if err != nil || len(s.Entries) != 0 {
		t.Errorf("after the last: %+v %v", s, err)
	}
	s, err = b.Statement(money.StatementRequest{Account: "ada", Newest: true, To: all.Entries[0].At})
	if err != nil || len(s.Entries) != 0 || s.More {
		t.Errorf("before the first: %+v %v", s, err)
	}
}
