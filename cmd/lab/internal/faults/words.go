package faults

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
)

// words records the statements of banks to each other. A bank must never change its statement about the instruction
// with a given number, even after a crash.
type words struct {
	asked map[pair]clearing.Instruction
	came  map[pair]money.TransferResult
}

// pair identifies an instruction: its sender, its receiver, and its number.
type pair struct {
	from, to messages.Name
	n        uint64
}

func newWords() words {
	return words{map[pair]clearing.Instruction{}, map[pair]money.TransferResult{}}
}

func (o *words) instructions(w *World, m *clearing.Instructions) {
	for i, in := range m.List {
		key := pair{m.From, m.To, m.First + uint64(i)}
		if before, known := o.asked[key]; known && before != in {
			w.violate("invariant 3: %s told %s first that instruction %d is %+v, and now that it is %+v", m.From, m.To, key.n, before, in)
		}
		o.asked[key] = in
	}
}

func (o *words) receipt(w *World, r *clearing.Receipt) {
	for i, came := range r.Outcomes {
		key := pair{r.To, r.From, r.First + uint64(i)}
		if before, known := o.came[key]; known && !alike(&before, &came) {
			w.violate("invariant 3: %s told %s first that the outcome of instruction %d is %+v, and now that it is %+v", r.From, r.To, key.n, before, came)
		}
		o.came[key] = came
	}
}

func alike(a, b *money.TransferResult) bool {
	return a.Amount == b.Amount && (a.Error == nil) == (b.Error == nil) && (a.Error == nil || *a.Error == *b.Error)
}
