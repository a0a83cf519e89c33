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
	a := annex{Tokens: b.issued, Returned: slices.Clone(b.returned)}
	for _, id := range slices.Sorted(maps.Values(b.byVisit)) {
		v := b.byID[id].Visit
		a.Visits = append(a.Visits, visitImage{id, v.Home, v.Job, v.Authorisation, v.Until})
	}
	for _, id := range slices.Sorted(maps.Keys(b.roams)) {
		a.roams = append(a.roams, *b.roams[id])
	}
	for id, j := range b.byID {
		if j.Deposit.Amount != 0 {
			a.Deposits = append(a.Deposits, depositImage{id, j.Deposit})
		}
	}
	slices.SortFunc(a.Deposits, func(x, y depositImage) int { return cmp.Compare(x.Job, y.Job) })
	a.Notes, a.Applies, a.markets = b.noteImages(), b.version, b.applied
	for _, n := range b.inOrder {
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
	b.issued, b.returned, b.version = a.Tokens, a.Returned, a.Applies
	for _, d := range a.Deposits {
		if b.byID[d.Job] == nil {
			return messages.Errorf(messages.Internal, "job %d with a deposit is missing", d.Job)
		}
		b.byID[d.Job].Deposit = d.Deposit
	}
	for _, v := range a.Visits {
		visit := &Visit{messages.Visit{Home: v.Home, Job: v.Number}, v.Authorisation, v.Until}
		if b.byID[v.Job] == nil {
			return messages.Errorf(messages.Internal, "job %d of %v is missing", v.Job, visit.Visit)
		}
		b.byID[v.Job].Visit = visit
		b.byVisit[visit.Visit] = v.Job
		pending := 1
		if b.byID[v.Job].State.Final() {
			pending = 0
		}
		b.countGuest(b.byID[v.Job], pending, 1)
	}
	if len(a.Markets) > 0 {
		var whole Apply
		if err := messages.Unmarshal(a.Markets, messages.Msgpack, &whole); err != nil {
			return err
		}
		b.applied = whole.Markets
	}
	for _, im := range a.Notes {
		b.note(im.Market, im.Notes, true)
	}
	for _, data := range a.Roams {
		r := new(Roam)
		if err := messages.Unmarshal(data, messages.Msgpack, r); err != nil {
			return err
		}
		b.roams[r.ID] = r
		b.enter(r.Account, r.Key, r.ID, r.Phase <= There)
	}
	return nil
}

// noteImage is the notes of a market, by job.
type noteImage struct {
	Market messages.Name
	Notes  []Note
}

// depositImage is the deposit of a job, in an image.
type depositImage struct {
	Job     messages.JobID
	Deposit Deposit
}

func (b *Book) noteImages() (out []noteImage) {
	for _, market := range slices.Sorted(maps.Keys(b.notes)) {
		out = append(out, noteImage{market, b.Notes(market)})
	}
	return out
}
