package bank

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/money"
)

// These tests ask three replicas of a bank to hold, charge and show credits. Meanwhile, leadership changes, answers are
// lost, and some replicas wrongly believe that they lead. Then porcupine checks whether one ledger could have given all
// the answers.

// These are the operations on an account and their answers, in the form that porcupine needs.
type (
	asked struct {
		account messages.Name
		kind    string // "hold", "post", "void" or "read"
		hold    messages.Credits
		amount  messages.Credits // for the operation "post"
	}
	answer struct {
		unknown           bool
		done              bool
		balance, reserved messages.Credits // for the operation "read"
	}
	standing struct{ balance, reserved messages.Credits }
)

const opening = 40 * c

var account = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := map[messages.Name][]porcupine.Operation{}
		for _, o := range history {
			name := o.Input.(asked).account
			parts[name] = append(parts[name], o)
		}
		var list [][]porcupine.Operation
		for _, part := range parts {
			list = append(list, part)
		}
		return list
	},
	Init: func() any { return standing{balance: opening} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(standing), input.(asked), output.(answer)
		switch in.kind {
		case "read":
			return out.balance == s.balance && out.reserved == s.reserved, s
		case "hold":
			fits := s.balance-s.reserved >= in.hold
			if fits {
				s.reserved += in.hold
			}
			return out.unknown || out.done == fits, s
		}
		s.reserved -= in.hold
		s.balance -= in.amount
		return out.unknown || out.done, s
	},
}

type run struct {
	*testing.T
	*trio
	clock   atomic.Int64
	ids     atomic.Int64
	forgets bool // the inserted bug: a repeated request gets another identifier

	historyMu sync.Mutex
	history   []porcupine.Operation
}

// record stores an operation, with the times of its call and its answer. If the outcome is unknown, the time of the
// answer is set to the end of time, because the operation may still take effect later.
func (r *run) record(caller int, in asked, call int64, out answer) {
	end := r.clock.Add(1)
	if out.unknown {
		end = math.MaxInt64
	}
	r.historyMu.Lock()
	defer r.historyMu.Unlock()
	r.history = append(r.history, porcupine.Operation{ClientId: caller, Input: in, Call: call, Output: out, Return: end})
}

func (r *run) caller(number, operations int, rng *rand.Rand) {
	type held struct {
		id string
		in asked
	}
	var holds []held
	for i := range operations {
		switch {
		case i%5 == 4:
			r.elect(rng.IntN(3))
		case i%7 == 3:
			r.replicas[rng.IntN(3)].box.LoseNext(mailbox.Loss(1 + rng.IntN(2)))
		}
		name := []messages.Name{"ada", "bob"}[rng.IntN(2)]
		switch {
		case rng.IntN(2) == 0:
			r.read(number, name, rng)
		case len(holds) > 0 && rng.IntN(2) == 0:
			h := holds[0]
			holds = holds[1:]
			h.in.kind, h.in.amount = "void", 0
			t := money.Transfer{ID: h.id + "/end", Kind: money.Void, Pending: h.id}
			if rng.IntN(2) == 0 {
				h.in.kind, h.in.amount = "post", h.in.hold/2
				t = post(h.id+"/end", h.id, h.in.amount)
			}
			r.transfer(number, h.in, t, rng)
		default:
			in := asked{account: name, kind: "hold", hold: messages.Credits(1+rng.IntN(10)) * c}
			id := fmt.Sprint(r.ids.Add(1))
			if id, done := r.transfer(number, in, hold(id, name, in.hold), rng); done {
				holds = append(holds, held{id, in})
			}
		}
	}
}

func (r *run) read(caller int, name messages.Name, rng *rand.Rand) {
	in, call := asked{account: name, kind: "read"}, r.clock.Add(1)
	for {
		reply, err := r.banks[rng.IntN(3)].queries.account(context.Background(), name, money.AccountRequest{})
		if err == nil {
			r.record(caller, in, call, answer{done: true, balance: reply.Balance, reserved: reply.Reserved})
			return
		}
		if messages.KindOf(err) != messages.NotLeader {
			r.Errorf("read: %v", err)
			return
		}
	}
}

// transfer sends a transfer again and again until its outcome is known. At random, it gives up earlier. It returns the
// transfer's identifier, and whether the transfer was carried out.
func (r *run) transfer(caller int, in asked, t money.Transfer, rng *rand.Rand) (string, bool) {
	call := r.clock.Add(1)
	for {
		reply, err := r.banks[rng.IntN(3)].commands.transfer(context.Background(), "$auctioneer", money.TransferRequest{Transfers: []money.Transfer{t}})
		switch kind := messages.KindOf(err); {
		case err == nil:
			refusal := reply.Results[0].Error
			if refusal != nil && refusal.Kind != messages.Insufficient {
				r.Errorf("%s: %v", in.kind, refusal)
			}
			r.record(caller, in, call, answer{done: refusal == nil})
			return t.ID, refusal == nil
		case kind == messages.Unknown && r.forgets && in.kind == "hold":
			t.ID = fmt.Sprint(r.ids.Add(1))
		case kind == messages.Unknown && rng.IntN(4) == 0:
			r.record(caller, in, call, answer{unknown: true})
			return t.ID, false
		case kind != messages.NotLeader && kind != messages.Unknown:
			r.Errorf("%s: %v", in.kind, err)
			return t.ID, false
		}
	}
}

func (r *run) open() {
	for _, name := range []messages.Name{"ada", "bob"} {
		c := ledger.Command{Verb: ledger.Grant, By: "ops", Grant: money.GrantRequest{Key: name, Account: name, Amount: opening}}
		if _, err := r.banks[0].group.propose(context.Background(), &c); err != nil {
			r.Fatal(err)
		}
	}
	for _, next := range []int{1, 2, 0} {
		r.elect(next) // each replica leads once, so that each has the opened accounts
	}
}

func (r *run) check() porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(account, r.history, time.Minute)
}

// TestAccountsAreLinearizable runs several callers at the same time. Three replicas lead, one after another, and some
// answers and commands are lost. All answers together must be linearizable.
func TestAccountsAreLinearizable(t *testing.T) {
	for seed := range uint64(30) {
		r := &run{T: t, trio: newTrio(t, false)}
		r.open()
		var group sync.WaitGroup
		for caller := range 4 {
			group.Go(func() { r.caller(caller, 50, rand.New(rand.NewPCG(seed, uint64(caller)))) })
		}
		group.Wait()
		if result := r.check(); result != porcupine.Ok {
			t.Fatalf("seed %d: %d operations are %s", seed, len(r.history), result)
		}
		r.agree()
	}
}

func (r *run) agree() {
	r.Helper()
	for i := range r.replicas {
		r.elect(i)
	}
	for _, x := range r.replicas {
		x.follow()
	}
	if a, b, c := r.banks[0].Hash(), r.banks[1].Hash(), r.banks[2].Hash(); a != b || b != c {
		r.Errorf("the replicas differ: %x, %x, %x", a, b, c)
	}
}

func TestTheCheckFindsPlantedBugs(t *testing.T) {
	for name, bug := range map[string]struct{ unverified, forgets bool }{
		"a read that is not verified":                {unverified: true},
		"a command sent again under another name":    {forgets: true},
		"neither, with the same caller and the rest": {},
	} {
		r := &run{T: t, trio: newTrio(t, bug.unverified), forgets: bug.forgets}
		r.open()
		r.caller(0, 120, rand.New(rand.NewPCG(7, 7)))
		want := porcupine.Illegal
		if bug == (struct{ unverified, forgets bool }{}) {
			want = porcupine.Ok
		}
		if result := r.check(); result != want {
			t.Errorf("%s: the history is %s, want %s", name, result, want)
		}
	}
}
