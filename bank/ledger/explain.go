package ledger

import "github.com/candor-grid/candor/messages"

// explain fills in what the entries of a page say only together with other
// records: who asked, and for a hold and all that is done with it, on whose
// word it was made and for which job. The job of a hold is often known only
// to what was done with it later: it is looked for while the hold is pending,
// and else on the page.
func (l *Ledger) explain(entries []messages.Entry) error {
	jobs := map[string]messages.JobID{}
	for i := range entries {
		e := &entries[i]
		rec, err := l.read(e.Number)
		if err != nil {
			return err
		}
		e.By = rec.by
		if rec.what == done {
			e.Pending = rec.asked.Pending
		}
		if hold := rec.about(); hold != "" {
			if err := l.explainHold(e, hold); err != nil {
				return err
			}
			if e.Job != 0 {
				jobs[hold] = e.Job
			}
		}
	}
	for i := range entries {
		if e := &entries[i]; e.Kind == messages.Hold && e.Job == 0 {
			e.Job = jobs[e.Transfer]
		}
	}
	return nil
}

// about is the hold that a record made or did something with, "" for none.
func (r *record) about() string {
	switch {
	case r.what == done && r.asked.Kind == messages.Hold:
		return r.asked.ID
	case r.what == lapsed || resolves(r.asked.Kind):
		return r.asked.Pending
	}
	return ""
}

func (l *Ledger) explainHold(e *messages.Entry, id string) error {
	h := l.holds[id]
	if h == nil {
		rec, err := l.seek(id)
		e.Member = rec.asked.Member
		return err
	}
	if e.Member = h.member; e.Member == "" {
		e.Member = h.account.name
	}
	if e.Job == 0 {
		e.Job = h.job
	}
	return nil
}
