package book

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

const (
	// MaxKept is the maximum number of failed attempts that are kept for a job. Each stage has an equal part, for its
	// first failed attempts.
	MaxKept = 64
	// MaxDetail is the maximum length of one attempt's detail in bytes. maxDetails limits all different details of a
	// job.
	MaxDetail  = 200
	maxDetails = 4 << 10
)

// Kept is an attempt that did not complete its task, or that lost a process to the memory limit.
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

// add keeps an attempt, if fewer than `most` attempts of its stage are kept. If all texts together would be too long,
// it keeps the attempt without its text.
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
