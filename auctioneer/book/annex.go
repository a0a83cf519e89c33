package book

import (
	"cmp"
	"maps"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// visitImage ties a job of an image to the job of another site that it is.
type visitImage struct {
	Job           messages.JobID
	Home          messages.Name
	Number        messages.JobID
	Authorisation string
	Until         messages.Time
}

// annex captures what does not stand in the first part of an image.
func (b *Book) annex() annex {
	a := annex{Tokens: b.tokens, Returned: slices.Clone(b.returned)}
	for _, id := range slices.Sorted(maps.Values(b.visits)) {
		v := b.jobs[id].Visit
		a.Visits = append(a.Visits, visitImage{id, v.Home, v.Job, v.Authorisation, v.Until})
	}
	for _, id := range slices.Sorted(maps.Keys(b.roams)) {
		a.roams = append(a.roams, *b.roams[id])
	}
	for id, j := range b.jobs {
		if j.Deposit.Amount != 0 {
			a.Deposits = append(a.Deposits, depositImage{id, j.Deposit})
		}
	}
	slices.SortFunc(a.Deposits, func(x, y depositImage) int { return cmp.Compare(x.Job, y.Job) })
	a.Notes, a.Applies, a.markets = b.noteImages(), b.applies, b.markets
	for _, n := range b.nodes {
		a.Most = append(a.Most, n.MostSuspended)
		a.Left = append(a.Left, slices.Clone(n.Left))
	}
	return a
}

// encode makes ready what is written in an encoding of its own.
func (a *annex) encode() (err error) {
	a.Roams = make([][]byte, len(a.roams))
	for i := range a.roams {
		if a.Roams[i], err = messages.Marshal(&a.roams[i], messages.Msgpack); err != nil {
			return err
		}
	}
	if len(a.markets) > 0 {
		a.Markets, err = messages.Marshal(&Apply{Markets: a.markets}, messages.Msgpack)
	}
	return err
}

// attach restores what an annex holds, after the jobs.
func (b *Book) attach(a *annex) error {
	b.tokens, b.returned, b.applies = a.Tokens, a.Returned, a.Applies
	for _, d := range a.Deposits {
		if b.jobs[d.Job] == nil {
			return messages.Errorf(messages.Internal, "job %d with a deposit is missing", d.Job)
		}
		b.jobs[d.Job].Deposit = d.Deposit
	}
	b.recount()
	for _, v := range a.Visits {
		visit := &Visit{messages.Visit{Home: v.Home, Job: v.Number}, v.Authorisation, v.Until}
		if b.jobs[v.Job] == nil {
			return messages.Errorf(messages.Internal, "job %d of %v is missing", v.Job, visit.Visit)
		}
		b.jobs[v.Job].Visit = visit
		b.visits[visit.Visit] = v.Job
	}
	b.recountGuests()
	if len(a.Markets) > 0 {
		var whole Apply
		if err := messages.Unmarshal(a.Markets, messages.Msgpack, &whole); err != nil {
			return err
		}
		b.markets = whole.Markets
	}
	b.renote(a.Notes)
	for _, data := range a.Roams {
		r := new(Roam)
		if err := messages.Unmarshal(data, messages.Msgpack, r); err != nil {
			return err
		}
		b.roams[r.ID] = r
		b.keys[r.Account+"/"+r.Key] = r.ID
		if r.Phase <= There {
			b.count(r.Account, 1)
		}
	}
	return nil
}
