package book

import (
	"cmp"
	"crypto/sha256"
	"maps"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// This file has the methods of a book that do not change it.

// Now returns the latest time of any command.
func (b *Book) Now() messages.Time { return b.clock.now }

// TakeChanges returns what changed since the last call.
func (b *Book) TakeChanges() Changes {
	c := b.watch.changed
	b.watch.changed = Changes{}
	slices.Sort(c.Jobs)
	slices.Sort(c.Nodes)
	c.Jobs, c.Nodes = slices.Compact(c.Jobs), slices.Compact(c.Nodes)
	return c
}

// Touched reports whether jobs or nodes have changed since the last call of TakeChanges.
func (b *Book) Touched() bool { return len(b.watch.changed.Jobs)+len(b.watch.changed.Nodes) > 0 }

// LastJob returns the highest job number until now.
func (b *Book) LastJob() messages.JobID { return b.index.lastJob }

// Backup returns when the latest restored backup began, or 0 if none was restored.
func (b *Book) Backup() messages.Time { return b.index.backup }

// Listed returns the numbers of an account's jobs, including jobs at other sites. The account "" means all accounts.
// The list changes with the book.
func (b *Book) Listed(account messages.Name) *Numbers { return b.index.listed[account] }

// Pending returns how many jobs of an account have not ended.
func (b *Book) Pending(account messages.Name) int { return b.index.pending[account] }

// Job returns the job with this number, or nil if there is none. The caller must not change the job.
func (b *Book) Job(id messages.JobID) *Job { return b.jobs.get(id) }

// Packed reports whether a job is stored as bytes. Such a job is Waiting, and [Book.Job] takes some microseconds to
// decode it.
func (b *Book) Packed(id messages.JobID) bool {
	at := b.jobs.byID.look(id)
	return at != nil && at.job == nil
}

// Glance returns the same job as [Book.Job], but the job is valid only until the next call with the same `spare`.
func (b *Book) Glance(id messages.JobID, spare *Spare) *Job { return b.jobs.byID.glance(id, spare) }

// Active returns the number of jobs that have not ended.
func (b *Book) Active() int { return b.jobs.byID.count + len(b.jobs.past) - len(b.jobs.ended) }

// Jobs calls the function `yield` for each job, in no particular order.
func (b *Book) Jobs(yield func(*Job) bool) { b.jobs.byID.all(true, yield) }

// The market's decision to start a certain job can be final. Ordered calls yield for each active job with such a
// decision, in no particular order.
func (b *Book) Ordered(yield func(*Job) bool) {
	for id := range b.jobs.ordered {
		if !yield(b.jobs.get(id)) {
			return
		}
	}
}

// Live returns the number of jobs of a market that have not ended.
func (b *Book) Live(market messages.Name) int { return b.jobs.alive[market] }

// Visiting returns how many jobs of another site have not ended, and how many are remembered.
func (b *Book) Visiting(home messages.Name) VisitingCount { return b.visitors.guests[home] }

// A job may wait for another job that is missing, or that has ended with the wrong outcome. Then the job can never
// start, and Dependable returns an error.
func (b *Book) Dependable(spec *job.JobSpec) error {
	for _, id := range spec.Predecessors() {
		if b.jobs.get(id) == nil && b.jobs.past[id] == nil {
			return messages.Errorf(messages.NotFound, "after_jobs: there is no job %d, or it ended long ago", id)
		}
	}
	var bad error
	for _, id := range spec.Awaited() {
		err := b.dependable(spec, id)
		if err == nil && spec.AfterAny {
			return nil
		}
		if bad == nil {
			bad = err
		}
	}
	if bad != nil {
		return bad
	}
	return b.pairable(spec)
}

// dependable returns an error if the awaited job has ended with the wrong outcome.
func (b *Book) dependable(spec *job.JobSpec, id messages.JobID) error {
	p := b.jobs.past[id]
	if j := b.jobs.get(id); j != nil && !j.Active() {
		p = j.brief()
	}
	switch {
	case p == nil || !never(spec, id, p.Outcome):
		return nil
	case p.Outcome == job.Completed:
		return messages.Errorf(messages.Ended, "after_failed: job %d has completed, so it will not fail", id)
	}
	return messages.Errorf(messages.Ended, "after_ok: job %d is %v, and will not complete", id, p.Outcome)
}

// A job can name an array in AfterEach: each task of the job then waits for the task of the array with the same index.
// pairable returns an error if the array has other indices, or if it has ended without a completed task.
func (b *Book) pairable(spec *job.JobSpec) error {
	id := spec.AfterEach
	if id == 0 {
		return nil
	}
	j := b.jobs.get(id)
	switch {
	case j == nil && b.jobs.past[id].Outcome == job.Completed:
	case j == nil:
		return messages.Errorf(messages.Ended, "after_each: job %d is %v, and the site no longer knows which of its tasks completed; leave after_each out, and submit only the indices of the tasks that completed", id, b.jobs.past[id].Outcome)
	case len(j.Stages) != 1 || len(spec.Stages) != 1 || j.Spec.Stages[0].Gang || spec.Stages[0].Gang || j.Stages[0].Total != spec.Stages[0].TaskCount() || !slices.Equal(j.Spec.Stages[0].Array, spec.Stages[0].Array):
		return messages.Errorf(messages.Invalid, "after_each: the arrays of the two jobs must have the same indices, and job %d has other indices, or none; use after_ok to wait for the whole job", id)
	case !j.Active() && j.Stages[0].Done == 0:
		return messages.Errorf(messages.Ended, "after_each: job %d is %v, and none of its tasks completed", id, j.Outcome)
	}
	return nil
}

// Awaited returns two lists of jobs. The job j still waits for the end of the jobs in `ends`, and for the start of the
// jobs in `starts`.
func (b *Book) Awaited(j *Job) (ends, starts []messages.JobID) { return b.dependencies.awaited(j) }

// NextBegin returns the next time at which a waiting job may begin, or at which a maintenance window begins or ends. It
// returns 0 if there is no such time.
func (b *Book) NextBegin() messages.Time {
	return messages.Earlier(b.dependencies.nextBegin(), b.windows.turns)
}

// Windows returns the maintenance windows that are not over, in the order of their numbers.
func (b *Book) Windows() (out []market.Window) {
	for _, w := range b.windows.all {
		out = append(out, *w)
	}
	return out
}

// Nodes returns the nodes by their first registration. The caller must not change them.
func (b *Book) Nodes() []*Node { return b.nodes.inOrder }

// Node returns a node by name, or nil if there is none.
func (b *Book) Node(name messages.Name) *Node {
	_, n := b.nodes.find(name)
	return n
}

// Position returns a node's position in [Book.Nodes], or false if there is no such node.
func (b *Book) Position(name messages.Name) (uint32, bool) {
	i, ok := b.nodes.names[name]
	return i, ok
}

// Promises returns the numbers of kept and of broken contracts, for each market that had contracts.
func (b *Book) Promises() []Promises { return b.markets.promises }

// MarketsVersion returns the number of times that markets were applied.
func (b *Book) MarketsVersion() uint64 { return b.markets.version }

// Markets returns the applied markets, or nil if no markets were applied.
func (b *Book) Markets() []market.Market { return b.markets.applied }

// AppliedBy returns the answer to the request with this key, if the request was carried out. It returns an error if the
// key belongs to another request.
func (b *Book) AppliedBy(key string, content [sha256.Size]byte) (a Applied, done bool, err error) {
	i := slices.IndexFunc(b.markets.answers, func(a Applied) bool { return a.Key == key })
	if key == "" || i < 0 {
		return a, false, nil
	}
	if b.markets.answers[i].Content != content {
		return a, true, messages.Errorf(messages.Conflict, "key: other markets were applied with the key %q; use another key", key)
	}
	return b.markets.answers[i], true, nil
}

// Unchanged returns an error if the markets changed after a check. The argument `since` is 1 + the markets' version at
// the check, or 0 for no check.
func (b *Book) Unchanged(since uint64) error {
	if since != 0 && since != b.markets.version+1 {
		return messages.Errorf(messages.NotLeader, "the markets have just been changed; ask again")
	}
	return nil
}

// Notes returns the notes of a market, ordered by job. The caller must not change the numbers in the notes.
func (b *Book) Notes(market messages.Name) []Note {
	known := b.markets.notes[market]
	out := make([]Note, 0, len(known))
	for job, numbers := range known {
		out = append(out, Note{job, numbers})
	}
	slices.SortFunc(out, func(x, y Note) int { return cmp.Compare(x.Job, y.Job) })
	return out
}

// QuotesOf returns how many quotes of another site's users are still valid.
func (b *Book) QuotesOf(home messages.Name, now messages.Time) (n int) {
	for _, q := range b.quotes.quoted {
		if _, of, visits := strings.Cut(q.Account, "@"); visits && of == home && q.Expires >= now {
			n++
		}
	}
	return n
}

// Tokens returns the join tokens, oldest first.
func (b *Book) Tokens() []messages.TokenState { return slices.Clone(b.tokens.issued) }

// Tariffs returns the present tariffs of a market. The caller must not change them.
func (b *Book) Tariffs(market messages.Name) []Tariff { return b.meters.tariffs[market] }

// Used returns the cost of a job's slots until now, and the total time of these slots. For each moment, the cost uses
// the tariff of that moment. The cost is rounded half to even to the microcredit.
func (b *Book) Used(j *Job, now messages.Time) (cost messages.Credits, slotTime messages.Duration) {
	return b.meters.used(j, now)
}

// EachEffect calls the function `yield` for each effect that waits, oldest first.
func (b *Book) EachEffect(yield func(Effect) bool) { b.effects.waiting.all(yield) }

// An effect names one job or several jobs. Names reports whether the book still has all of them. If not, the effect has
// nothing to do.
func (b *Book) Names(e *Effect) bool {
	if e.Kind == Release {
		return true
	}
	for _, l := range e.Legs {
		if !b.jobs.stands(l.From) || !b.jobs.stands(l.To) {
			return false
		}
	}
	return b.jobs.get(e.Job) != nil
}

// LastEffect returns the number of the latest effect.
func (b *Book) LastEffect() uint64 { return b.effects.last }

// EachNotice calls yield for each waiting notice, oldest first. The caller must not change the notices.
func (b *Book) EachNotice(yield func(*Notice) bool) {
	for _, block := range b.notices.queue.blocks {
		for i := range block {
			if !yield(&block[i]) {
				return
			}
		}
	}
}

// Remote returns a job that another site runs, or nil if there is no such job. The caller must not change the job.
func (b *Book) Remote(id messages.JobID) *RemoteJob { return b.remote.remoteJobs[id] }

// Departed returns the number of jobs at a peer that are not over.
func (b *Book) Departed(peer messages.Name) int { return b.remote.departed[peer] }

// EndUnreachable returns the steps that end the remote jobs that can no longer be charged. These are jobs with an
// authorisation whose credits the bank has freed, because the other site may never answer again. They are also the jobs
// at a site in `lost`, the set of the sites that ended business with this site.
func (b *Book) EndUnreachable(now messages.Time, lost map[messages.Name]bool) (out []Step) {
	for id, r := range b.remote.remoteJobs {
		parted := lost[r.Peer]
		if r.Phase < Sending || r.Phase == Over || r.Authorisation == nil || !parted && r.Authorisation.Authorisation.Frees() >= now {
			continue
		}
		if r.Phase == Releasing {
			out = append(out, Step{Job: id, Released: true})
			continue
		}
		if r.Phase == Sending && !parted {
			out = append(out, Step{Job: id, Refused: messages.Errorf(messages.Expired, "site %s did not accept the job before its authorisation ended", r.Peer)})
			continue
		}
		last := r.Status
		last.State, last.Reason = job.Failed, "SiteGone"
		if parted {
			last.Running, last.Ended = 0, now
			last.Reason, last.Message = "PeerLost", "this site has parted from site "+r.Peer+"; the budget is given back"
		}
		if r.Cancelled {
			last.State, last.Reason = job.Cancelled, "CancelledBy"+by(r.By, r.Account)
		}
		out = append(out, Step{Job: id, Status: &last})
	}
	slices.SortFunc(out, func(x, y Step) int { return cmp.Compare(x.Job, y.Job) })
	return out[:min(len(out), mostEndSteps)]
}

// ByKey returns the job that an account submitted under a key, or nil if there is none.
func (b *Book) ByKey(account messages.Name, key string) *Job {
	return b.Job(b.index.find(account, key))
}

// RemoteByKey returns the job for another site that an account submitted under a key, or nil if there is none.
func (b *Book) RemoteByKey(account messages.Name, key string) *RemoteJob {
	return b.Remote(b.index.find(account, key))
}

// Forgotten reports whether some job number, from 1 to the last job number, has no job any more. The book has forgotten
// the job, or has skipped the number.
func (b *Book) Forgotten() bool { return int(b.index.lastJob) > len(b.index.keys) }

// OldestEnd returns the earliest end of a job among the ended jobs that the book remembers. If there is none, it
// returns 0.
func (b *Book) OldestEnd() (at messages.Time) {
	b.jobs.byID.all(false, func(j *Job) bool {
		at = messages.Earlier(at, j.Ended)
		return true
	})
	for p := range b.EachPast {
		at = messages.Earlier(at, p.Ended)
	}
	return at
}

// Visitor returns the visiting job with this home site and number, or nil if there is none.
func (b *Book) Visitor(v job.Visit) *Job { return b.Job(b.visitors.byVisit[v]) }

// VisitingJob returns the visiting job with this number. The number is the number at this site, not at the home site.
// The result is nil if the job is gone or belongs to this site. The caller must not change the job.
func (b *Book) VisitingJob(id messages.JobID) *Job {
	if b.jobs.visits(id) {
		return b.Job(id)
	}
	return nil
}

// Quote returns a valid quote, which the caller must not change, or nil if there is none.
func (b *Book) Quote(id uint64) *Quote { return b.quotes.find(id, b.clock.now) }

// Past returns what the book keeps of a job whose record has left the book, or nil. The caller must not change it.
func (b *Book) Past(id messages.JobID) *Past {
	if p := b.jobs.past[id]; p != nil {
		return p
	}
	return b.remote.past[id]
}

// EachPast calls yield for each job whose record has left the book, in no fixed order.
func (b *Book) EachPast(yield func(*Past) bool) {
	for _, all := range []map[messages.JobID]*Past{b.jobs.past, b.remote.past} {
		for _, p := range all {
			if !yield(p) {
				return
			}
		}
	}
}

// Entered returns a summary of the job that an account submitted under a key, also if its record is in the archive. It
// returns nil if there is no such job.
func (b *Book) Entered(account messages.Name, key string) *Past {
	id := b.index.find(account, key)
	if j := b.Job(id); j != nil {
		return j.brief()
	}
	if r := b.Remote(id); r != nil {
		return r.brief()
	}
	return b.Past(id)
}

// Watch starts or stops the collection of changes. At the start all jobs and nodes count as changed. The caller must
// take the changes regularly, because they accumulate.
func (b *Book) Watch(on bool) {
	b.watch = watch{watched: on}
	if !on {
		return
	}
	for id := range b.Listed("").All() {
		b.watch.touch(id)
	}
	for i := range b.Nodes() {
		b.watch.touchNode(uint32(i))
	}
	b.watch.touchEffects()
	b.watch.changed.Notices = true
}

// Archive sets the function that gets each record that leaves the book. The function must not change the record. It
// gets the records in the same order on all replicas. After a restart, the book is restored from an image. All records
// that left the book after this image then come once more.
func (b *Book) Archive(f func(Ended)) { b.archive.take = f }

// Claimable returns how many tasks of a job's stage could be claimed now, with the free licences and bounds.
func (b *Book) Claimable(j *Job, stage int) int { return b.licenses.claimable(j, stage) }

// Limited reports whether licences or bounds limit how many tasks of an active job run at the same time.
func (b *Book) Limited(j *Job) bool {
	if !j.Active() {
		return false
	}
	for i := range j.Spec.Stages {
		if b.licenses.limits(j, i) {
			return true
		}
	}
	return false
}

// Reached returns the first bound that keeps a task of a stage from starting, or nil if none does.
func (b *Book) Reached(j *Job, stage int) *Reached { return b.bounds.reached(j, stage) }

// Room returns how many more tasks of a stage, or how many more gangs, the bounds of an account and its project allow.
func (b *Book) Room(account messages.Name, spec *job.JobSpec, stage int) int {
	return b.bounds.room(account, spec, stage)
}

// Bounds returns the bounds of the markets, ordered by market name.
func (b *Book) Bounds() []MarketBounds { return b.bounds.list() }

// FreeLicenses returns how many licences of this name are free.
func (b *Book) FreeLicenses(name messages.Name) int { return b.licenses.free(name) }

// Licenses returns the licences of the site, by name.
func (b *Book) Licenses() (out []job.LicenseStatus) {
	for _, name := range slices.Sorted(maps.Keys(b.licenses.byName)) {
		out = append(out, *b.licenses.byName[name])
	}
	return out
}

// TotalLicenses returns how many licences of each name the site has.
func (b *Book) TotalLicenses() (out job.Licenses) {
	for _, s := range b.Licenses() {
		if s.Total > 0 {
			out = append(out, job.License{Name: s.Name, Count: s.Total})
		}
	}
	return out
}
