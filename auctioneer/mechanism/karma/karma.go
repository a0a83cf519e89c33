package karma

import (
	"github.com/candor-grid/candor/messages/heap"
)

// The constant One is the karma for one slot in one quantum. It is a million, because karma is counted in millionths.
const One = 1_000_000

// User has the data of one account in one quantum.
type User struct {
	Karma  int64
	Demand int
	// Least is how many slots the account holds now; these slots cannot be taken back. Most is how many slots the
	// account can have.
	Least, Most int
	Given       int // set by Quantum
}

// Guaranteed returns the number of slots that each of n accounts can always have.
func Guaranteed(slots, n int, alpha float64) int {
	if n == 0 {
		return 0
	}
	return int(alpha * float64(slots) / float64(n))
}

// Free returns the karma that each of n accounts gets for free in a quantum, from the slots that are guaranteed to
// nobody.
func Free(slots, n, guaranteed int) int64 {
	if n == 0 {
		return 0
	}
	return int64(slots-n*guaranteed) * One / int64(n)
}

// Quantum divides the slots of one quantum of time among the accounts. An account that gets more than its guaranteed
// slots borrows them, and pays karma. An account that does not use all its guaranteed slots donates the others, and
// earns karma when they are borrowed.
func Quantum(slots, guaranteed int, users []User) {
	shared := slots - len(users)*guaranteed
	donated := make([]int, len(users))
	order := func(before func(a, b int64) bool) *heap.Order[int] {
		return &heap.Order[int]{Before: func(i, k int) bool {
			a, b := users[i].Karma, users[k].Karma
			return before(a, b) || a == b && i < k
		}}
	}
	poorest, richest := order(func(a, b int64) bool { return a < b }), order(func(a, b int64) bool { return a > b })
	var donors, borrowers []int
	for i := range users {
		u := &users[i]
		u.Given = min(u.Demand, u.Most, guaranteed)
		if donated[i] = max(0, guaranteed-u.Demand); donated[i] > 0 {
			poorest.Push(&donors, i)
		}
	}
	take := func(u *User) { // u pays one karma for a slot, to a donor if there is one
		u.Given, u.Karma = u.Given+1, u.Karma-One
		if len(donors) == 0 {
			shared--
			return
		}
		d := donors[0]
		users[d].Karma += One
		if donated[d]--; donated[d] == 0 {
			poorest.Pop(&donors)
		} else {
			poorest.Fix(donors, 0)
		}
	}
	for i := range users {
		for u := &users[i]; u.Given < u.Least; {
			take(u)
		}
		if u := &users[i]; u.Given < min(u.Demand, u.Most) && u.Karma >= One {
			richest.Push(&borrowers, i)
		}
	}
	for len(borrowers) > 0 && (len(donors) > 0 || shared > 0) {
		u := &users[borrowers[0]]
		if take(u); u.Given == min(u.Demand, u.Most) || u.Karma < One {
			richest.Pop(&borrowers)
		} else {
			richest.Fix(borrowers, 0)
		}
	}
}
