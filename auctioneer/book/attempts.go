package book

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Each task stores a few bytes about its latest attempt. Earlier attempts, and the texts with which nodes explain how
// attempts ended, are stored only for a limited number of attempts of each job.
const (
	// MaxKept is the maximum number of failed attempts that are kept for a job: the first ones of each stage, with an
	// equal part for each stage.
	MaxKept = 64
	// MaxDetail is the maximum length of one attempt's detail in bytes. maxDetails is the maximum for all different
	// details of one job.
	MaxDetail  = 200
	maxDetails = 4 << 10
)

// Kept is an attempt that did not complete its task. An attempt that completed its task is also kept if the memory
// limit killed one of its processes.
type Kept struct {
	Stage, Index, Attempt uint32
	Node                  uint32 // position in Book.Nodes
	Reason                job.EndReason
	Exit                  int32
	Claimed, Ended        messages.Time
	Paused                messages.Duration
	CPU                   messages.Duration
	MaxRSS                int64
	Detail                string
}

// Attempts are the kept attempts of a job, in the order in which they ended.
type Attempts []Kept

// add keeps an attempt, unless the maximum number of attempts of its stage, most, is already kept.
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

// past returns the record of an attempt, or nil if the attempt is not kept.
func (a Attempts) past(stage, index, attempt uint32) *Kept {
	at := slices.IndexFunc(a, func(k Kept) bool { return k.Stage == stage && k.Index == index && k.Attempt == attempt })
	if at < 0 {
		return nil
	}
	return &a[at]
}

// Of returns the kept attempts of a stage, ordered by task index and attempt number.
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

// shareDetails stores equal details only once in memory.
func (a Attempts) shareDetails() {
	for i := range a {
		at := slices.IndexFunc(a, func(k Kept) bool { return k.Detail == a[i].Detail })
		a[i].Detail = a[at].Detail
	}
}
