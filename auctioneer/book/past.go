package book

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Past is what the book keeps of a job whose record is in the archive. It is enough to answer a repeated submission,
// and to decide about jobs that wait for this job.
type Past struct {
	ID      messages.JobID
	Account messages.Name
	Key     string
	Digest  []byte
	Payer   messages.Name
	Market  messages.Name
	Held    messages.Credits
	Tasks   int
	Outcome job.State
	Ended   messages.Time
	Peer    messages.Name // the site that ran the job; "" means this site
	Chosen  string        // why the peer was chosen
}

// archive gives the records of ended jobs that leave the book to the function `take`. It is not part of the replicated
// state.
type archive struct {
	whole int // how many records of ended jobs stay in the book, for each kind
	take  func(Ended)
}

func (a *archive) add(e Ended) {
	if a.take != nil {
		a.take(e)
	}
}

func (j *Job) brief() *Past {
	r := j.Receipt()
	return &Past{ID: j.ID, Account: j.Account, Key: j.Key, Digest: j.Digest, Payer: j.Payer, Market: r.Market, Held: j.Held, Tasks: r.Tasks,
		Outcome: j.Outcome, Ended: j.Ended}
}

func (r *RemoteJob) brief() *Past {
	p := r.Receipt()
	return &Past{ID: r.ID, Account: r.Account, Key: r.Key, Digest: r.Digest, Payer: r.Payer, Market: r.Spec.Market, Held: p.Held, Tasks: p.Tasks,
		Outcome: r.Status.State, Ended: r.Status.Ended, Peer: r.Peer, Chosen: r.Chosen}
}

// Ended is the record of a job that has ended. Exactly one field is set.
type Ended struct {
	Job    *Job
	Remote *RemoteJob
}
