package reservation

import "github.com/candor-grid/candor/messages"

// The exact program refuses problems above these limits:
const (
	// MaxCells bounds the number of bids multiplied by the number of granules. The time of a solution grows with this
	// product.
	MaxCells = 1 << 36
	// MaxMemory bounds the memory of the rows of the table that are kept, in bytes.
	MaxMemory = 512 << 20
)

// Solve finds the schedule with the highest value, and all prices, if each bid needs the whole machine.
func Solve(p *Problem) (*Outcome, error) {
	if p.wide() {
		return nil, messages.Errorf(messages.Invalid, "N: bids of any width need the field orders or the field search: give one of the two")
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	m := newMoney(p.Bids)
	var a lane
	a.gather(p, m, all(len(p.Bids)))
	if err := a.check(); err != nil {
		return nil, err
	}
	value := a.suffix()
	without := make([]int64, len(p.Bids))
	a.trace(without)
	start := make([]int, len(p.Bids))
	a.starts(start)
	return newOutcome(m, start, value, without), nil
}

// check refuses a problem that would take too much time or memory.
func (a *lane) check() error {
	rows := 2*a.block + 3
	if a.horizon < MaxCells/max(len(a.items), 1) && a.horizon < MaxMemory/8/rows {
		return nil
	}
	return messages.Errorf(messages.TooLarge, "T: %d bids over %d granules are too many for an exact solution: use coarser granules",
		len(a.items), a.horizon)
}

// starts sets the start of each bid. If the lane does not serve a bid, its start is Lost.
func (a *lane) starts(start []int) {
	for i := range start {
		start[i] = Lost
	}
	for _, x := range a.items {
		start[x.bid] = x.start
	}
}

func all(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
