package desk

import (
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// warnings finds jobs that will soon have spent their budgets. It looks only at markets that end such jobs. The owner
// of a found job gets a notice, and the job's running tasks get their early signals.
type warnings struct {
	*core
	asked map[messages.JobID]bool // jobs for which a warning is being committed
}

// The time until a job's warning is estimated from the present price. Prices can rise, so the budget is checked again
// after half of this time.
const (
	soonestLook = messages.Duration(time.Second)
	latestLook  = messages.Duration(30 * time.Second)
)

// look warns the owner of a job if the budget is about to end. It returns the time of the next check, or 0.
func (w *warnings) look(b *book.Book, j *book.Job, m *market.Market) messages.Time {
	before := notice(j)
	if before == 0 || j.Started == 0 || j.Warned == j.Spec.Budget || w.asked[j.ID] || registry.Of(m).Owes != mechanism.ForTime {
		return 0
	}
	now := w.now.Wall
	cost, _ := b.Used(j, now)
	then, _ := b.Used(j, now.Add(before))
	switch {
	case then <= cost: // nothing runs, or nothing is charged now
		return now.Add(latestLook)
	case then >= j.Left():
		w.warn(j.ID)
		return now.Add(latestLook)
	}
	left := messages.Duration((j.Left() - cost).Float() / (then - cost).Float() * float64(before))
	return now.Add(min(max((left-before)/2, soonestLook), latestLook))
}

// notice returns how long before the end of its budget a job wants a warning. It returns 0 if the job wants none.
func notice(j *book.Job) (before messages.Duration) {
	for i := range j.Spec.Stages {
		if s := j.Spec.Stages[i].Signal; s != nil {
			before = max(before, s.Time())
		}
	}
	for i := range j.Spec.Notify {
		if before == 0 && j.Spec.Notify[i].Wants(job.NotifyBudget) {
			before = (&job.EarlySignal{}).Time()
		}
	}
	return before
}

// warn commits a warning, and sends the early signals to the running tasks. A task that starts later gets no signal.
func (w *warnings) warn(id messages.JobID) {
	w.asked[id] = true
	w.propose(&book.Command{Warn: &book.Warn{Job: id}}, func(_ any, err error) {
		delete(w.asked, id)
		if err != nil {
			w.tell(Waiting{"warnings about budgets", err})
			return
		}
		w.book.Read(func(b *book.Book) {
			if j := b.Job(id); j != nil {
				w.signal(b, j)
			}
		})
	})
}

func (w *warnings) signal(b *book.Book, j *book.Job) {
	by := map[uint32][]agent.Warning{}
	var nodes []uint32 // the nodes of the tasks, in the order of the tasks
	for i := range j.Stages {
		signal := j.Spec.Stages[i].Signal
		if signal == nil {
			continue
		}
		for k := range j.Stages[i].Tasks {
			t := &j.Stages[i].Tasks[k]
			r := messages.TaskRef{Job: j.ID, Stage: uint32(i), Index: uint32(k)}
			if t.Phase != book.Claimed || b.Nodes()[t.Node].Claims[r].Halt != book.Goes {
				continue
			}
			if by[t.Node] == nil {
				nodes = append(nodes, t.Node)
			}
			by[t.Node] = append(by[t.Node], agent.Warning{Attempt: messages.Attempt{Task: r, Number: t.Attempt}, Signal: *signal})
		}
	}
	for _, at := range nodes {
		n := b.Nodes()[at]
		w.out.Direct = append(w.out.Direct, Direction{n.Name, agent.Directive{Term: w.Term, Suspended: n.Halted(), Version: n.Version, Warn: by[at]}})
	}
}
