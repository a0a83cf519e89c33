package workload

import (
	"fmt"
	"math/bits"

	"github.com/candor-grid/candor/deploy/simulated/swf"
	"github.com/candor-grid/candor/messages"
)

type builder struct {
	*Workload
	options       Options
	users, groups map[int64]int
	bad           int // number of records that could be read but contain an error
}

func (w *Workload) note(format string, args ...any) {
	w.Notes = append(w.Notes, fmt.Sprintf(format, args...))
}

// machine finds the number of slots. It takes the number from the options if they have one, and otherwise from the
// header of the log. If jobs are gangs, the number is at least the width of the widest job.
func (b *builder) machine(log *swf.Log) error {
	if b.Nodes = b.options.Nodes; b.Nodes > 0 {
		return nil
	}
	widest, all := int64(0), int64(0)
	for i := range log.Jobs {
		if j := &log.Jobs[i]; j.Run >= 0 && j.Width() > 0 && j.Width() <= MostNodes {
			widest, all = max(widest, j.Width()), all+j.Width()
		}
	}
	for _, key := range []string{"MaxProcs", "MaxNodes"} {
		n, ok := log.Number(key)
		switch {
		case !ok || n < 1 || n > MostNodes:
			if text, given := log.Value(key); given && text != "-1" {
				b.note("the header's %s is ignored: %.40q is not a number of processors from 1 to %d", key, text, MostNodes)
			}
			continue
		case n < widest && b.options.Parallel == Gang:
			b.note("the header says %s: %d, but there are jobs of %d processors: the study assumes a machine of %d", key, n, widest, widest)
			n = widest
		case n < widest:
			b.note("the machine has %d slots, as the header's %s says, though there are jobs of %d processors", n, key, widest)
		case n > all:
			b.note("the machine has %d slots, as the header's %s says, though all jobs of the log together need %d", n, key, all)
		default:
			b.note("the machine has %d slots, as the header's %s says", n, key)
		}
		b.Nodes = int(n)
		return nil
	}
	if widest < 2 {
		return messages.Errorf(messages.Invalid, "nodes: the log's header does not say how many processors the machine has: give the number of nodes")
	}
	b.Nodes = int(widest)
	b.note("the header does not say how many processors the machine has: the study assumes as many as the widest job has, %d", widest)
	return nil
}

// add adds a record to the workload, or counts why it was left out.
func (b *builder) add(r *swf.Job) error {
	switch {
	case r.Submit == -1:
		b.Skipped.NoSubmit++
		return nil
	case r.Run == -1:
		b.Skipped.NoLength++
		return nil
	case r.Width() == 0 || r.Width() == -1:
		b.Skipped.NoWidth++
		return nil
	}
	if err := b.sound(r); err != nil {
		if !b.options.SkipBad {
			return err
		}
		b.Skipped.Bad++
		if b.bad++; b.bad == 1 {
			b.note("records with mistakes were left out; the first one: %s", messages.Detail(err))
		}
		return nil
	}
	at := float64(r.Submit)
	switch {
	case at < b.options.From || b.options.To > 0 && at >= b.options.To:
		b.Skipped.Outside++
	case r.Width() > 1 && b.options.Parallel == Leave:
		b.Skipped.Parallel++
	default:
		b.enter(r)
	}
	return nil
}

// sound returns an error for a wrong record. An unknown waiting time or number of requested processors is no error.
func (b *builder) sound(r *swf.Job) error {
	refuse := func(format string, args ...any) error {
		return messages.Errorf(messages.Invalid, "line %d: job %d: %s", r.Line, r.Number, fmt.Sprintf(format, args...))
	}
	switch {
	case r.Submit < 0 || float64(r.Submit) > MostTime:
		return refuse("submitted at %d s: must be from 0 to %g; -1 is unknown", r.Submit, float64(MostTime))
	case r.Run < 0 || float64(r.Run) > MostTime:
		return refuse("ran %d s: must be from 0 to %g; -1 is unknown", r.Run, float64(MostTime))
	case r.Wait < -1 || float64(r.Wait) > MostTime:
		return refuse("waited %d s: must be from 0 to %g; -1 is unknown", r.Wait, float64(MostTime))
	case r.Width() < 0 || r.Width() > MostNodes:
		return refuse("has %d processors: must be from 1 to %d; -1 is unknown", r.Width(), MostNodes)
	case b.options.Parallel == Gang && r.Width() > int64(b.Nodes):
		return refuse("needs %d processors at the same time, but the machine has %d: use more nodes, split parallel jobs, or skip such jobs", r.Width(), b.Nodes)
	}
	return nil
}

func (b *builder) enter(r *swf.Job) {
	width := int(r.Width())
	if b.options.Parallel == Wide { // round the width up to a power of two
		width = min(1<<bits.Len(uint(width-1)), NodeSlots)
	}
	b.Jobs = append(b.Jobs, Job{
		Number: r.Number, Line: r.Line, Submit: float64(r.Submit), Runtime: float64(r.Run),
		Asked: min(float64(max(0, r.Limit)), MostTime), Width: width, Queue: r.Queue,
		User: number(b.users, &b.Users, r.User), Group: number(b.groups, &b.Groups, r.Group),
	})
}

// number returns the position in a list of the number n from a log. If n is not in the list, it is added. All negative
// numbers count as Unknown.
func number(known map[int64]int, list *[]int64, n int64) int {
	n = max(n, Unknown)
	i, ok := known[n]
	if !ok {
		i = len(*list)
		known[n] = i
		*list = append(*list, n)
	}
	return i
}
