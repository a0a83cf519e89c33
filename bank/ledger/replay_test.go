package ledger

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// environment returns a number from an environment variable, or the argument `otherwise` if the variable is not set.
func environment(t *testing.T, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestReplay makes ledgers with random histories. It must be possible to verify and restore each history. If a fault is
// inserted or a record is altered, verifying and restoring must fail. CANDOR_SEEDS is the number of seeds, and
// CANDOR_FIRST_SEED is the first seed.
func TestReplay(t *testing.T) {
	first := environment(t, "CANDOR_FIRST_SEED", 1)
	for seed := first; seed < first+environment(t, "CANDOR_SEEDS", 4); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { replayOne(t, seed) })
	}
}

func replayOne(t *testing.T, seed uint64) {
	make := func() *bed {
		b := newControlBed(t)
		b.wander(rand.New(rand.NewPCG(seed, 1)), 80)
		return b
	}
	sound := make()
	sound.balanced()
	all := journalOf(t, sound.Ledger)
	if v, err := verify(all, true); err != nil || v.Head() != sound.Capture().Head() {
		t.Fatalf("it does not verify: %v", err)
	}
	if restored := restore(t, encodeImage(t, sound.Ledger)); restored.Hash() != sound.Hash() {
		t.Fatal("it is restored to something else")
	}
	for name, c := range controls {
		b := make()
		c.plant(b)
		for _, a := range b.accounts.order {
			b.accounts.touch(a)
		}
		if _, err := verify(journalOf(t, b.Ledger), true); err == nil {
			t.Errorf("%s: it verifies", name)
		}
		if err := New().Restore(bytes.NewReader(encodeImage(t, b.Ledger))); err == nil {
			t.Errorf("%s: it is restored", name)
		}
	}
	r := rand.New(rand.NewPCG(seed, 2))
	for range 100 {
		place, how := r.IntN(len(all)), r.IntN(len(alterations))
		altered := alter(all[place], alterations[how].alter)
		if altered == nil {
			continue
		}
		changed := append([][]byte(nil), all...)
		changed[place] = altered
		if _, err := verify(changed, true); err == nil {
			t.Errorf("record %d of %d: %s: it verifies", place+1, len(all), alterations[how].name)
		}
	}
}

// alterations are ways to change a record so that it breaks a rule. The function `alter` changes a record, and returns
// false if this way does not fit the record.
var alterations = []struct {
	name  string
	alter func(*record) bool
}{
	{"another amount", func(r *record) bool { r.asked.Amount++; return r.what == done && r.asked.Kind <= money.Post }},
	{"another standing", func(r *record) bool { r.outcome.debitAfter.balance++; return r.what == done || r.what == lapsed }},
	{"done is refused", func(r *record) bool {
		was := r.what
		r.what, r.refusal = refused, messages.Error{Kind: messages.Insufficient, Message: "no"}
		return was == done && r.by != ""
	}},
	{"refused for something else", func(r *record) bool { r.refusal.Kind = messages.Fenced; return r.what == refused }},
	{"before the start", func(r *record) bool { r.at = 1; return true }},
	{"by nobody", func(r *record) bool { was := r.by; r.by = ""; return was != "" && r.what != refused }},
	{"no rank", func(r *record) bool { r.rank = 9; return r.by != "" }},
	{"an operator as a service", func(r *record) bool {
		was := r.rank
		r.rank = Service
		return was == Operator && r.by != ""
	}},
	{"another entry", func(r *record) bool { r.debitLink.ordinal += 2; return r.what == done && r.debitLink.ordinal > 3 }},
	{"an identifier of another", func(r *record) bool { r.asked.ID = "done"; return (r.what == done || r.what == refused) && r.by != "" }},
	{"a bad name", func(r *record) bool { r.account = "Not A Name"; return r.what == opened || r.what == membership }},
	{"a setting of no account", func(r *record) bool { r.change.account = "nowhere"; return r.what == changed }},
}

// alter decodes a record, lets the function `how` change it, and returns the new bytes. It returns nil if `how` returns
// false, because it cannot change such a record.
func alter(raw []byte, how func(*record) bool) []byte {
	rec, _ := decodeRecord(raw)
	if rec.asked.ID == "done" || !how(&rec) {
		return nil
	}
	var w codec
	w.record(&rec)
	return w.b
}

// wander applies n random commands. Tests insert faults in some accounts and holds, and wander does not change these
// accounts and holds.
func (b *bed) wander(r *rand.Rand, n int) {
	pick := func(names ...messages.Name) messages.Name { return names[r.IntN(len(names))] }
	var ids []string
	id := func() string { ids = append(ids, fmt.Sprint("w", len(ids))); return ids[len(ids)-1] }
	old := func() string {
		if len(ids) == 0 {
			return "nothing"
		}
		return ids[r.IntN(len(ids))]
	}
	amount := func() messages.Credits {
		if r.IntN(8) == 0 {
			return 500 // more than any account has
		}
		return messages.Credits(1 + r.IntN(2))
	}
	b.command(Command{Verb: Project, By: "ops", Project: money.ProjectRequest{Account: "sea", Title: "the sea", Owners: []messages.Name{"dan", "eve"}}})
	b.command(Command{Verb: Grant, By: "ops", Grant: money.GrantRequest{Key: "sea", Account: "sea", Amount: 60, Expires: 1300}})
	b.grant("dan", 60)
	for range n {
		b.at += messages.Time(r.IntN(12))
		key := fmt.Sprint(r.IntN(n))
		role, limit := money.Role(r.IntN(3)+1), messages.Credits(r.IntN(9))
		by, rank := messages.Name("ops"), Operator
		if r.IntN(2) == 0 {
			by, rank = pick("dan", "eve", "zoe"), User
		}
		switch r.IntN(12) {
		case 0:
			b.command(Command{Verb: Grant, By: "ops", Grant: money.GrantRequest{Key: key, Account: pick("dan", "sea", "eve"), Amount: amount(), Expires: messages.Time(r.IntN(2)) * (b.at + messages.Time(r.IntN(60)) - 5)}})
		case 1:
			b.command(Command{Verb: Member, By: by, Rank: rank, Member: money.MemberRequest{Account: "sea", Member: pick("dan", "eve", "fay"), Remove: r.IntN(4) == 0}})
		case 2:
			b.command(Command{Verb: Member, By: by, Rank: rank, Member: money.MemberRequest{Account: "sea", Member: pick("dan", "eve", "fay"), Role: &role, Limit: &limit}})
		case 3:
			b.command(Command{Verb: Pay, By: by, Rank: rank, Pay: money.PayRequest{Key: key, From: pick("sea", "dan"), To: pick("dan", "eve", "sea", "nobody"), Amount: amount()}})
		case 4:
			b.command(Command{Verb: Freeze, By: by, Rank: rank, Freeze: money.FreezeRequest{Account: pick("sea", "dan"), Frozen: r.IntN(2) == 0, Reason: "r"}})
		case 5:
			b.command(Command{Verb: Credit, By: "ops", Credit: money.CreditRequest{Account: pick("sea", "dan"), Credit: messages.Credits(r.IntN(40))}})
		case 6:
			b.command(Command{Verb: Withdraw, By: "ops", Withdraw: money.WithdrawRequest{Key: key, Account: pick("sea", "dan"), Amount: amount(), Reason: "r"}})
		case 7:
			b.command(Command{Verb: Correct, By: "ops", Correct: money.CorrectRequest{Transfer: pick("", "$correct/", "$correct/$correct/") + old(), Amount: messages.Credits(r.IntN(2)), Reason: "r"}})
		default:
			var list []money.Transfer
			for range 1 + r.IntN(4) {
				t := money.Transfer{ID: id(), Kind: money.Hold, Debit: "sea", Member: pick("dan", "eve", "fay", "sea"), Amount: amount(), Timeout: messages.Duration(r.IntN(3) * 40_000)}
				switch r.IntN(6) {
				case 0, 1:
					t = post(t.ID, old(), amount())
				case 2:
					t = void(t.ID, old())
				case 3:
					t = extend(t.ID, old(), b.at+messages.Time(r.IntN(90)))
				case 4:
					t = posted(t.ID, pick("sea", "dan", "$site"), pick("eve", "dan", "sea", "nobody"), amount())
				}
				list = append(list, t)
			}
			if r.IntN(2) == 0 {
				list = linked(list...)
			}
			b.send(list...)
		}
	}
}
