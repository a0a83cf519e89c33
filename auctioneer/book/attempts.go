package book

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// A task says in a few bytes how its latest attempt went. Earlier attempts, and how nodes
// explain the ends of attempts, are kept of a bounded number of attempts of each job.
const (
	// MaxKept bounds the failed attempts of a job that are kept: the first ones of each stage,
	// in equal parts.
	MaxKept = 64
	// MaxDetail bounds the detail of one attempt, and maxDetails the different details
	// of one job together, in bytes.
	MaxDetail  = 200
	maxDetails = 4 << 10
)

// Kept is an attempt that did not complete its task, or that completed it although its memory limit had ended one of
// its processes.
type Kept struct {
	Stage, Index, Attempt uint32
	Node                  uint32 // position in Book.Nodes
	Reason                messages.EndReason
	Exit                  int32
	Claimed, Ended        messages.Time
	Paused                messages.Duration
	CPU                   messages.Duration
	MaxRSS                int64
	Detail                string
}

// Attempts are some attempts of a job that did not complete their tasks, in the order in which they ended.
type Attempts []Kept

// add keeps an attempt, if fewer than most of its stage are kept.
func (a *Attempts) add(k Kept, most int) {
	of, bytes := 0, len(k.Detail)
	for i := range *a {
		o := &(*a)[i]
		if o.Stage == k.Stage {
			of++
		}
		switch {
		case o.Detail == k.Detail:
			k.Detail = o.Detail // equal texts share memory
			bytes -= len(k.Detail)
		case !slices.ContainsFunc((*a)[:i], func(earlier Kept) bool { return earlier.Detail == o.Detail }):
			bytes += len(o.Detail)
		}
	}
	if of >= most {
		return
	}
	if bytes > maxDetails {
		k.Detail = ""
	}
	*a = append(*a, k)
}

// past returns an attempt that is kept, nil if it is not.
func (a Attempts) past(stage, index, attempt uint32) *Kept {
	at := slices.IndexFunc(a, func(k Kept) bool { return k.Stage == stage && k.Index == index && k.Attempt == attempt })
	if at < 0 {
		return nil
	}
	return &a[at]
}

// Of returns the attempts of a stage's tasks, ordered by index and number.
func (a Attempts) Of(stage int) (out []Kept) {
	for _, k := range a {
		if int(k.Stage) == stage {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b Kept) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Attempt, b.Attempt))
	})
	return out
}

// shareDetails lets equal details share memory.
func (a Attempts) shareDetails() {
	for i := range a {
		at := slices.IndexFunc(a, func(k Kept) bool { return k.Detail == a[i].Detail })
		a[i].Detail = a[at].Detail
	}
}
