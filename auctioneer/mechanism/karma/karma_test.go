package karma

import (
	"testing"

	"pgregory.net/rapid"
)

// season draws the demands of each account in each quantum.
func season(t *rapid.T, accounts, slots int) [][]int {
	out := make([][]int, rapid.IntRange(1, 6).Draw(t, "quanta"))
	for k := range out {
		for range accounts {
			out[k] = append(out[k], rapid.IntRange(0, slots).Draw(t, "demand"))
		}
	}
	return out
}

// play runs quanta by the paper's algorithm. After quantum k it calls `after` with the accounts before and after this
// quantum.
func play(in *input, after func(k int, before, users []User)) []User {
	users := make([]User, in.accounts())
	for i := range users {
		users[i].Karma = int64(in.Karma * One)
	}
	for k, demands := range in.Demands {
		before := append([]User{}, users...)
		in.quantum(users, demands)
		if after != nil {
			after(k, before, users)
		}
	}
	return users
}

func drawn(t *rapid.T, alpha float64, karma float64) *input {
	n := rapid.IntRange(1, 4).Draw(t, "accounts")
	slots := n * rapid.IntRange(1, 4).Draw(t, "share")
	return &input{Alpha: alpha, Slots: slots, Karma: karma, Demands: season(t, n, slots)}
}

// TestQuantum checks each decision: its efficiency, the guaranteed share and the sum of karma. In some runs, the
// accounts have too little karma.
func TestQuantum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawn(t, rapid.SampledFrom([]float64{0, 0.3, 0.5, 1}).Draw(t, "alpha"), rapid.SampledFrom([]float64{0, 2, 1000}).Draw(t, "karma"))
		n := in.accounts()
		g := Guaranteed(in.Slots, n, in.Alpha)
		play(in, func(k int, before, users []User) {
			given, wanted, borrowed, donated, change, broke := 0, 0, 0, 0, int64(0), false
			for i, u := range users {
				given, wanted, change = given+u.Given, wanted+u.Demand, change+u.Karma-before[i].Karma
				borrowed, donated = borrowed+max(0, u.Given-g), donated+max(0, g-u.Demand)
				broke = broke || u.Given < u.Demand && u.Karma < One
				if u.Given > u.Demand || u.Given < min(u.Demand, g) || u.Karma < 0 {
					t.Fatalf("quantum %d: %+v, guaranteed %d", k, u, g)
				}
			}
			if !broke && given != min(in.Slots, wanted) || given > in.Slots {
				t.Fatalf("quantum %d: %d of %d slots given, %d wanted", k, given, in.Slots, wanted)
			}
			if want := int64(n)*Free(in.Slots, n, g) - int64(max(0, borrowed-donated))*One; change != want {
				t.Fatalf("quantum %d: karma changed by %d, want %d", k, change, want)
			}
		})
	})
}

// With α = 0, the mechanism balances the total number of slots that each account got in all quanta so far. Suppose that
// in a quantum account A got fewer slots than it asked for, and account B got slots. Then the total of B must be at
// most one more than the total of A.
func TestFairness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawn(t, 0, 1000)
		total := make([]int, in.accounts())
		play(in, func(k int, _, users []User) {
			for i, u := range users {
				total[i] += u.Given
			}
			for i, u := range users {
				for j, other := range users {
					if u.Given < u.Demand && other.Given > 0 && total[j] > total[i]+1 {
						t.Fatalf("quantum %d: %v in all, now %+v", k, total, users)
					}
				}
			}
		})
	})
}

// useful returns how many slots the account `me` gets that it can really use. The account announces the demands in
// `announced`, in place of its true demands.
func useful(in *input, me int, announced []int) int {
	told := *in
	told.Demands = nil
	for k, row := range in.Demands {
		row = append([]int{}, row...)
		row[me] = announced[k]
		told.Demands = append(told.Demands, row)
	}
	sum := 0
	play(&told, func(k int, _, users []User) { sum += min(users[me].Given, in.Demands[k][me]) })
	return sum
}

// An account that reports demands above its true demands may gain at most one slot, when it wins a tie. An account that
// reports smaller demands may gain at most 50 %, plus one slot.
func TestLies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawn(t, 0, 1000)
		me := rapid.IntRange(0, in.accounts()-1).Draw(t, "liar")
		truth, more, less := make([]int, len(in.Demands)), make([]int, len(in.Demands)), make([]int, len(in.Demands))
		for k, row := range in.Demands {
			truth[k] = row[me]
			more[k] = row[me] + rapid.IntRange(0, in.Slots).Draw(t, "more")
			less[k] = rapid.IntRange(0, row[me]).Draw(t, "less")
		}
		honest := useful(in, me, truth)
		if got := useful(in, me, more); got > honest+1 {
			t.Fatalf("announcing more: %d in place of %d", got, honest)
		}
		if got := useful(in, me, less); float64(got) > 1.5*float64(honest)+1 {
			t.Fatalf("announcing less: %d in place of %d", got, honest)
		}
	})
}

// ada uses nothing in a quantum, and later asks for all slots. She must get more than bob; max-min fairness would give
// both the same.
func TestWhoGaveUpGoesFirst(t *testing.T) {
	in := &input{Alpha: 0.5, Slots: 4, Karma: 10, Demands: [][]int{{0, 4}, {4, 4}}}
	var given [][2]int
	users := play(in, func(_ int, _, u []User) { given = append(given, [2]int{u[0].Given, u[1].Given}) })
	// Both users begin with 10 karma, and each gets 1 karma for free in each quantum. In the first quantum, bob borrows
	// 3 slots and pays 3 karma. One of these slots was guaranteed to ada, so she gets 1 karma. At the start of the
	// second quantum, each user gets 1 karma again: ada then has 13 karma and bob has 9. So in this quantum, ada
	// borrows the two slots that are guaranteed to nobody, and pays 2 karma.
	if given[0] != [2]int{0, 4} || given[1] != [2]int{3, 1} || users[0].Karma != 11*One || users[1].Karma != 9*One {
		t.Errorf("%v %+v", given, users)
	}
	if g := Guaranteed(5, 2, 1); g != 2 || Free(5, 2, g) != One/2 {
		t.Errorf("of 5 slots each of 2 accounts is guaranteed %d, with %d karma for free", g, Free(5, 2, g))
	}
	if g, free := Guaranteed(5, 0, 1), Free(1, 0, 0); g != 0 || free != 0 {
		t.Errorf("without accounts %d slots are guaranteed, with %d karma for free", g, free)
	}
}

// Slots that an account holds cannot be taken back. It must pay for them, and may owe karma.
func TestHeldSlots(t *testing.T) {
	users := []User{{Karma: 0, Demand: 4, Least: 4, Most: 4}, {Karma: 5 * One, Demand: 4, Most: 0}}
	Quantum(4, 1, users)
	if users[0].Given != 4 || users[0].Karma != -3*One || users[1].Given != 0 || users[1].Karma != 5*One {
		t.Errorf("%+v", users)
	}
}
