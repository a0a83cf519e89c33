package ledger

import (
	"fmt"
	"maps"
	"math"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// crowd is a ledger with n accounts and a project with n members. The account busy has n holds, n payments, and n/10
// grants that expire.
type crowd struct {
	*bed
	n int
}

func user(i int) messages.Name { return fmt.Sprint("user", i) }

func crowded(t *testing.T, n int) *crowd {
	w := &crowd{newBed(t), n}
	w.grant("busy", 1e6*c)
	w.must(&Command{Verb: Project, By: "ops", Project: money.ProjectRequest{Account: "lab", Title: "a lab", Owners: []messages.Name{"ada"}}})
	w.grant("lab", 1e6*c)
	for i := range n {
		w.grant(user(i), 1e3*c)
		w.must(&Command{Verb: Member, By: "ops", Member: money.MemberRequest{Account: "lab", Member: user(i)}})
		w.do(money.Transfer{ID: fmt.Sprint("hold", i), Kind: money.Hold, Debit: "busy", Member: "busy", Amount: c, Expires: messages.Time(1e15 + 1e9*int64(i))})
		w.do(money.Transfer{ID: fmt.Sprint("paid", i), Debit: "busy", Credit: user(i), Amount: 1})
		if i < n/10 {
			w.must(&Command{Verb: Grant, By: "ops", Grant: money.GrantRequest{Key: fmt.Sprint("lot", i), Account: "busy", Amount: c, Expires: messages.Time(2e15 + 1e9*int64(i))}})
		}
	}
	w.commands = nil
	return w
}

func (w *crowd) must(o *Command) {
	w.Helper()
	r := w.command(*o)
	if r.Error != nil {
		w.Fatalf("%+v: %v", o, r.Error)
	}
	for _, one := range r.Transfers {
		if one.Error != nil {
			w.Fatalf("%+v: %v", o, one.Error)
		}
	}
}

func transfer(t money.Transfer) *Command {
	return &Command{Verb: Transfers, By: "$auctioneer", Rank: Service, Transfers: []money.Transfer{t}}
}

// kinds has the kinds of commands that the test measures. For each kind there is a function that returns the i-th
// command of this kind. Commands that need signatures are left out.
var kinds = map[string]func(w *crowd, i int) *Command{
	"hold": func(w *crowd, i int) *Command {
		return transfer(money.Transfer{ID: fmt.Sprint("new", i), Kind: money.Hold, Debit: "busy", Member: "busy", Amount: c, Expires: messages.Time(5e14)})
	},
	"hold of a member": func(w *crowd, i int) *Command {
		return transfer(money.Transfer{ID: fmt.Sprint("member", i), Kind: money.Hold, Debit: "lab", Member: user(i), Amount: c})
	},
	"post": func(w *crowd, i int) *Command {
		return transfer(money.Transfer{ID: fmt.Sprint("post", i), Kind: money.Post, Pending: fmt.Sprint("hold", w.n/2+i), Credit: money.SiteAccount, Amount: 1})
	},
	"void": func(w *crowd, i int) *Command {
		return transfer(money.Transfer{ID: fmt.Sprint("void", i), Kind: money.Void, Pending: fmt.Sprint("hold", w.n/2+i)})
	},
	"extend": func(w *crowd, i int) *Command {
		return transfer(money.Transfer{ID: fmt.Sprint("extend", i), Kind: money.Extend, Pending: fmt.Sprint("hold", w.n/2+i), Expires: 3e15})
	},
	"payment of a job": func(w *crowd, i int) *Command {
		return transfer(money.Transfer{ID: fmt.Sprint("posted", i), Debit: "busy", Credit: money.SiteAccount, Amount: 1})
	},
	"grant": func(w *crowd, i int) *Command {
		return &Command{Verb: Grant, By: "ops", Grant: money.GrantRequest{Key: fmt.Sprint("g", i), Account: "busy", Amount: 1}}
	},
	"grant that expires": func(w *crowd, i int) *Command {
		return &Command{Verb: Grant, By: "ops", Grant: money.GrantRequest{Key: fmt.Sprint("e", i), Account: "busy", Amount: 1, Expires: messages.Time(19e14 + int64(i))}}
	},
	"grant to a new account": func(w *crowd, i int) *Command {
		return &Command{Verb: Grant, By: "ops", Grant: money.GrantRequest{Key: fmt.Sprint("n", i), Account: fmt.Sprint("newcomer", i), Amount: 1}}
	},
	"add a member": func(w *crowd, i int) *Command {
		return &Command{Verb: Member, By: "ops", Member: money.MemberRequest{Account: "lab", Member: fmt.Sprint("ant", i)}}
	},
	"remove a member": func(w *crowd, i int) *Command {
		return &Command{Verb: Member, By: "ops", Member: money.MemberRequest{Account: "lab", Member: user(w.n/2 + i), Remove: true}}
	},
	"project": func(w *crowd, i int) *Command {
		return &Command{Verb: Project, By: "ops", Project: money.ProjectRequest{Account: fmt.Sprint("project", i), Title: "t", Owners: []messages.Name{"ada"}}}
	},
	"pay": func(w *crowd, i int) *Command {
		return &Command{Verb: Pay, By: "busy", Rank: User, Pay: money.PayRequest{Key: fmt.Sprint(i), From: "busy", To: user(i), Amount: 1}}
	},
	"freeze": func(w *crowd, i int) *Command {
		return &Command{Verb: Freeze, By: "ops", Freeze: money.FreezeRequest{Account: user(i), Frozen: true}}
	},
	"credit": func(w *crowd, i int) *Command {
		return &Command{Verb: Credit, By: "ops", Credit: money.CreditRequest{Account: user(i), Credit: 3}}
	},
	"withdraw": func(w *crowd, i int) *Command {
		return &Command{Verb: Withdraw, By: "ops", Withdraw: money.WithdrawRequest{Key: fmt.Sprint(i), Account: "busy", Amount: 1, Reason: "r"}}
	},
	"correct": func(w *crowd, i int) *Command { // corrects a recent transfer; for an older one, the ledger would have to read a segment
		w.do(money.Transfer{ID: fmt.Sprint("mistake", i), Debit: "busy", Credit: user(i), Amount: 1})
		return &Command{Verb: Correct, By: "ops", Correct: money.CorrectRequest{Transfer: fmt.Sprint("mistake", i), Reason: "r"}}
	},
	"time passes, and a hold ends": func(w *crowd, i int) *Command {
		w.at = max(w.at, messages.Time(1e15+1e9*int64(i)))
		return &Command{Verb: Expire}
	},
}

// TestEachKindOfCommandCostsNoMoreAmongMore checks that a command takes at most twice as long in a ledger ten times as
// large.
func TestEachKindOfCommandCostsNoMoreAmongMore(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a garbage collection would make some commands slower, at random
	const n = 900
	ratios := map[string]float64{}
	for kind := range kinds {
		ratios[kind] = math.Inf(1)
	}
	for range 4 {
		few, many := crowded(t, n), crowded(t, 10*n)
		for k, kind := range slices.Sorted(maps.Keys(kinds)) {
			if ratios[kind] >= 2 {
				ratios[kind] = min(ratios[kind], many.cost(kind, k)/few.cost(kind, k))
			}
		}
		debug.FreeOSMemory()
	}
	for kind, times := range ratios {
		if times >= 2 {
			t.Errorf("%s: among ten times as much it costs %.1f times as much", kind, times)
		}
	}
}

// cost returns the median time of several commands of a kind. It takes the median because a pause of the machine in one
// command does not change it.
func (w *crowd) cost(kind string, at int) float64 {
	const each = 15
	var all [each]float64
	for i := range all {
		o := kinds[kind](w, at*each+i)
		began := time.Now()
		w.must(o)
		all[i] = time.Since(began).Seconds()
	}
	slices.Sort(all[:])
	return all[each/2]
}
