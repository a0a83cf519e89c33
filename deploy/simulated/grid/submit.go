package grid

import (
	"math"
	"strconv"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/messages"
)

// key is under which the user submits a job.
func key(i int) string { return "j" + strconv.Itoa(i) }

// spec is what the user of a job says of it.
func (l *leader) spec(i int) (*messages.JobSpec, error) {
	j, b := &l.Work.Jobs[i], &l.Bids[i]
	s := &messages.JobSpec{
		Market: l.market.Config.Name, Length: messages.Duration(b.Length * 1e9),
		Utility: &messages.Utility{Form: messages.Linear, Weights: messages.Weights{{Class: class, Weight: 1}}},
		Stages:  []messages.Stage{{Name: "main", Class: class, Tasks: j.Width, Command: []string{"run"}}},
	}
	for _, f := range []struct {
		to *messages.Credits
		x  float64
	}{{&s.Budget, b.Budget}, {&s.Rate, b.Rate}, {&s.Value, b.Rate * b.Length * float64(j.Width)}, {&s.Delay, b.Rate * float64(j.Width)}} {
		var ok bool
		if *f.to, ok = messages.RoundCredits(f.x); !ok {
			return nil, messages.Errorf(messages.Invalid, "an amount of %v credits is above the limit", f.x)
		}
	}
	if !math.IsInf(b.Deadline, 1) {
		s.Deadline = at(b.Deadline)
	}
	return s, nil
}

// submit takes a job: admitted, its budget held at the bank, then committed.
// It may be asked again.
func (l *leader) submit(i int) {
	j := &l.Work.Jobs[i]
	who := account(j.User)
	if l.book.ByKey(who, key(i)) != nil || l.out.Jobs[i].Fate == core.Refused {
		return
	}
	spec, err := l.spec(i)
	if err == nil {
		err = l.market.Admit(l.now, l.market.Bid(0, who, l.now, spec, nil))
	}
	if err != nil {
		l.refuse(i)
		return
	}
	hold := "job/" + site + "/" + who + "/" + key(i)
	l.transfer([]messages.Transfer{{ID: hold, Kind: messages.Hold, Debit: who, Credit: messages.SiteAccount, Amount: spec.Budget, Member: who, Reason: "budget of a job"}},
		func(r []messages.TransferResult) {
			if r[0].Error != nil {
				l.fail("the hold of job %d was refused: %v", j.Number, r[0].Error)
				return
			}
			l.enter(i, who, hold, spec)
		})
}

// enter commits a job whose hold was made.
func (l *leader) enter(i int, who messages.Name, hold string, spec *messages.JobSpec) {
	if l.book.ByKey(who, key(i)) != nil {
		return
	}
	result := l.propose(&book.Command{Submit: &book.Submit{Account: who, Key: key(i), Digest: []byte(key(i)), Payer: who, Spec: spec, Hold: hold, Held: spec.Budget}})
	receipt, ok := result.(book.Receipt)
	if !ok {
		l.fail("job %d cannot be entered: %v", l.Work.Jobs[i].Number, result)
		return
	}
	l.of[receipt.Job] = int32(i)
}

func (l *leader) refuse(i int) {
	l.out.Jobs[i] = core.Job{Start: math.NaN(), Finish: sinceEpoch(l.now), Fate: core.Refused}
	l.ended++
}

// carryOut makes the book's effects happen: charges at the bank, and what there
// is to observe.
func (l *leader) carryOut() {
	for _, e := range l.book.Effects(512) {
		if l.asked[e.ID] {
			continue
		}
		l.asked[e.ID] = true
		if e.Kind == book.Observe {
			l.observe(l.book.Job(e.Job))
			l.confirm(book.Confirmation{Effect: e.ID})
			continue
		}
		l.transfer([]messages.Transfer{charge(l.book.Job(e.Job))}, func(r []messages.TransferResult) {
			if r[0].Error != nil {
				l.fail("a charge was refused: %v", r[0].Error)
			}
			l.confirm(book.Confirmation{Effect: e.ID, Amount: r[0].Amount})
		})
	}
}

func (l *leader) confirm(c book.Confirmation) {
	delete(l.asked, c.Effect)
	l.propose(&book.Command{Confirm: &book.Confirm{Effects: []book.Confirmation{c}}})
}

func charge(j *book.Job) messages.Transfer {
	t := messages.Transfer{ID: j.Hold + "/charge", Kind: messages.Post, Pending: j.HoldID(), Debit: j.Payer, Credit: messages.SiteAccount,
		Amount: j.Owed, Job: j.ID, Reason: j.Why}
	if j.Owed == 0 {
		t.Kind, t.Debit, t.Credit = messages.Void, "", ""
	}
	return t
}

// observe notes what became of a job that is final.
func (l *leader) observe(j *book.Job) {
	i := l.of[j.ID]
	delete(l.of, j.ID)
	w, r := &l.Work.Jobs[i], &l.out.Jobs[i]
	*r = core.Job{Start: math.NaN(), Finish: sinceEpoch(j.Ended), Paid: j.Charged}
	if j.Started != 0 {
		r.Start = sinceEpoch(j.Started)
	}
	switch j.State {
	case messages.Completed:
		r.Used = w.Work()
		if r.Finish <= l.Bids[i].Deadline {
			r.InTime = 1
		}
	case messages.Discarded:
		r.Fate = core.Discarded
	default:
		r.Fate = core.Expired
	}
	l.ended++
}
