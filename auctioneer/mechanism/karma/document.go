package karma

import (
	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
)

// input is the document of `candor solve karma`.
type input struct {
	Alpha   float64 `json:"alpha"`
	Slots   int     `json:"slots"`
	Karma   float64 `json:"karma"`   // karma of each account at the beginning; the number 1 means one karma
	Demands [][]int `json:"demands"` // by quantum, then by account
}

// answer has two numbers for each quantum and each account: how many slots the account got, and how much karma it has
// afterwards.
type answer struct {
	Given [][]int     `json:"given"`
	Karma [][]float64 `json:"karma"`
}

const largest = 1_000_000 // largest number of slots, demand or karma

// SolveDocument answers the JSON document that the package describes.
func SolveDocument(data []byte) (any, error) {
	in, err := casefile.Read[input](data)
	if err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	out := answer{Given: [][]int{}, Karma: [][]float64{}}
	users := make([]User, in.accounts())
	for i := range users {
		users[i].Karma = int64(in.Karma * One)
	}
	for _, demands := range in.Demands {
		in.quantum(users, demands)
		given, karma := make([]int, len(users)), make([]float64, len(users))
		for i := range users {
			given[i], karma[i] = users[i].Given, float64(users[i].Karma)/One
		}
		out.Given, out.Karma = append(out.Given, given), append(out.Karma, karma)
	}
	return out, nil
}

// quantum computes one quantum of the paper's algorithm.
func (in *input) quantum(users []User, demands []int) {
	g := Guaranteed(in.Slots, len(users), in.Alpha)
	for i := range users {
		users[i] = User{Karma: users[i].Karma + Free(in.Slots, len(users), g), Demand: demands[i], Most: demands[i]}
	}
	Quantum(in.Slots, g, users)
}

func (in *input) accounts() int {
	if len(in.Demands) == 0 {
		return 0
	}
	return len(in.Demands[0])
}

func (in *input) check() error {
	switch {
	case !(in.Alpha >= 0 && in.Alpha <= 1):
		return casefile.Invalid("alpha", "must be from 0 to 1, is %g", in.Alpha)
	case in.Slots < 0 || in.Slots > largest:
		return casefile.Invalid("slots", "must be from 0 to %d, is %d", largest, in.Slots)
	case !(in.Karma >= 0 && in.Karma <= largest):
		return casefile.Invalid("karma", "must be from 0 to %d, is %g", largest, in.Karma)
	}
	for k, row := range in.Demands {
		if len(row) != in.accounts() {
			return casefile.Invalid("demands", "quantum %d has %d accounts, but the first quantum has %d", k, len(row), in.accounts())
		}
		for i, d := range row {
			if d < 0 || d > largest {
				return casefile.Invalid("demands", "quantum %d, account %d: must be from 0 to %d, is %d", k, i, largest, d)
			}
		}
	}
	return nil
}
