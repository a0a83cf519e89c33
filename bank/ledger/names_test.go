package ledger

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

func TestNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfDistinct(rapid.StringMatching("[a-c]{1,4}"), func(s string) string { return s }).Draw(t, "names")
		var set names
		for _, name := range list {
			set.add(name)
		}
		slices.Sort(list)
		from := rapid.StringMatching("[a-c]{0,3}").Draw(t, "from")
		want := slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s <= from })
		if got := slices.Collect(set.after(from)); !slices.Equal(got, want) {
			t.Fatalf("after %q: %q, want %q", from, got, want)
		}
	})
}

// TestAccountsPages reads all accounts page by page. Each account must appear once, in ascending order.
func TestAccountsPages(t *testing.T) {
	b := newBed(t)
	rng := rand.New(rand.NewPCG(1, 1))
	for _, i := range rng.Perm(2500) {
		b.grant(fmt.Sprintf("u%04d", i), 1)
	}
	var all []messages.Name
	q := money.AccountsRequest{}
	for pages := 1; ; pages++ {
		r, err := b.AccountsPage(q)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range r.Accounts {
			all = append(all, a.Account)
		}
		if !r.More {
			if pages != 3 {
				t.Errorf("%d pages", pages)
			}
			break
		}
		q.After = r.Accounts[len(r.Accounts)-1].Account
	}
	if len(all) != 2502 || !slices.IsSorted(all) {
		t.Errorf("%d accounts, sorted: %v", len(all), slices.IsSorted(all))
	}
	if _, err := b.AccountsPage(money.AccountsRequest{Limit: MaxAccounts + 1}); messages.KindOf(err) != messages.TooLarge {
		t.Error(err)
	}
	b.must(b.command(Command{Verb: Project, By: "ops", Project: money.ProjectRequest{Account: "zoo"}}))
	if r, err := b.AccountsPage(money.AccountsRequest{Projects: true}); err != nil || len(r.Accounts) != 1 || r.Accounts[0].Account != "zoo" || r.More {
		t.Errorf("%+v %v", r, err)
	}
}
