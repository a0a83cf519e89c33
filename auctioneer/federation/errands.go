package federation

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/backoff"
	"github.com/candor-grid/candor/messages/clearing"
)

const (
	atOnce       = 32                                 // number of errands to one destination at the same time
	errandWithin = messages.Duration(5 * time.Second) // how long an errand waits for its answer
	newsWithin   = clearing.MaxPeerWait / 4           // how long a peer may delay its answer until something changes
	// time between two requests to the bank for the peers with which this site has ended business
	lookForLost = messages.Duration(5 * time.Second)

	bank messages.Name = "" // the name of the destination for errands to the site's own bank
)

// retries are the waiting times after failures. They are short, because a connection may be interrupted only briefly.
// No event shortens a wait: otherwise a busy site could overload a peer that does not answer.
var retries = backoff.Backoff{First: 50 * time.Millisecond, Last: 4 * time.Second}

// Request is a request that is sent once. The caller must pass the answer, or an error, to [Errands.Answered], at the
// latest when the time `Within` has passed.
type Request struct {
	ID     uint64
	Peer   messages.Name // the peer whose auctioneer is asked; "" means the site's own bank
	Verb   string
	Body   any               // a pointer to the verb's request
	Reply  any               // a pointer to the value for the answer
	Within messages.Duration // how long to wait for the answer
	Job    messages.JobID    // the job of the errand; 0 if the request asks about all jobs at the peer
}

// Errands decides, for all remote jobs, which requests are sent next to the bank and to peers. These requests are
// called errands. Errands also knows which jobs are at which peer, and ends jobs whose authorisations end. Its state is
// an index of the book: if the state is lost, it can be computed again from the book.
type Errands struct {
	authorisedFor messages.Duration
	rng           *rand.Rand
	last          uint64 // last identifier of a request
	asked         map[uint64]*asked
	destinations  map[messages.Name]*destination
	queued        map[messages.JobID]messages.Name // by job: the destination whose queue has the job
	underWay      map[messages.JobID]bool
	visiting      map[messages.JobID]bool // visiting jobs that have not ended
	sought        map[messages.JobID]bool // jobs about which the bank or the peer must be asked once more
	lost          map[messages.Name]bool  // peers with which this site has ended business
	looking       bool                    // a request to the bank for these peers has no answer yet
	look          messages.Duration       // when to ask the bank for these peers again

	// signed has authorisations that the bank signed again, because the peer refused the first one. A nil entry means
	// that the bank has not been asked yet.
	signed map[messages.JobID]*clearing.SignedAuthorisation
}

// The type `asked` is a request whose answer has not come or is not committed yet.
type asked struct {
	Request
	errand Errand
	reply  *clearing.PeerJobsReply // the reply that is being committed
}

// destination is a receiver of requests about jobs: a peer, or the site's own bank.
type destination struct {
	name    messages.Name
	queue   []messages.JobID // jobs that may wait for an errand; some may not wait any more
	open    int              // number of unfinished errands of this round
	failed  error            // error of an errand of this round
	silent  error            // error of the last request if it got no answer
	errands pause
	trouble string

	there   map[messages.JobID]bool // remote jobs at the peer
	follows bool                    // a request for changed jobs has no answer yet
	cursor  clearing.PeerJobsRequest
	seen    map[messages.JobID]bool // jobs that the present pass through all jobs has returned
	news    pause
}

// NewErrands returns the errands of a new leader. The argument `authorisedFor` is how long the bank authorises a remote
// job. The random numbers from rng spread the times at which requests are repeated.
func NewErrands(authorisedFor messages.Duration, rng *rand.Rand) *Errands {
	return &Errands{authorisedFor: authorisedFor, rng: rng, asked: map[uint64]*asked{}, destinations: map[messages.Name]*destination{},
		queued: map[messages.JobID]messages.Name{}, underWay: map[messages.JobID]bool{}, visiting: map[messages.JobID]bool{}, sought: map[messages.JobID]bool{},
		signed: map[messages.JobID]*clearing.SignedAuthorisation{}}
}

func (e *Errands) destination(name messages.Name) *destination {
	if e.destinations[name] == nil {
		e.destinations[name] = &destination{name: name, there: map[messages.JobID]bool{}}
	}
	return e.destinations[name]
}

// Changed says which jobs have changed in the book: their numbers in ascending order. Local, remote and visiting jobs
// may be among them.
func (e *Errands) Changed(b *book.Book, ids []messages.JobID) {
	for _, id := range ids {
		if r := b.Remote(id); r != nil {
			e.note(r)
		} else if j := b.VisitingJob(id); j != nil && j.Active() {
			e.visiting[id] = true
		} else {
			delete(e.visiting, id)
		}
	}
}

// note updates the index after a change of the remote job `r`. If the book has forgotten the job, `r` is nil and note
// does nothing.
func (e *Errands) note(r *book.RemoteJob) {
	if r == nil {
		return
	}
	if peer := e.destination(r.Peer); r.Phase == book.There {
		peer.there[r.ID] = true
	} else {
		delete(peer.there, r.ID)
	}
	errand, is := e.next(r)
	to := errand.to(r)
	switch was, waits := e.queued[r.ID]; {
	case e.underWay[r.ID]: // done looks at the job again
	case !is:
		delete(e.queued, r.ID)
	case !waits || was != to:
		e.queued[r.ID] = to
		d := e.destination(to)
		d.queue = append(d.queue, r.ID)
	}
	if r.Phase == book.Over {
		delete(e.sought, r.ID)
	}
	if r.Phase != book.Sending {
		delete(e.signed, r.ID)
	}
}

// next returns the next errand for a job, or false if there is none. It returns what the function [Next] returns, with
// two additions. If a peer refused the job's authorisation, the bank must sign a new one. If a job is missing from the
// peer's list, the peer must be asked about the job.
func (e *Errands) next(r *book.RemoteJob) (Errand, bool) {
	if errand, is := Next(r); is {
		if again, refused := e.signed[r.ID]; errand == Send && refused && again == nil {
			return Authorise, true
		}
		if e.lost[r.Peer] && r.Phase == book.Releasing {
			return Release, true
		}
		return errand, true
	}
	return inquire, r.Phase == book.There && e.sought[r.ID]
}

// Due returns the requests to send now.
func (e *Errands) Due(now messages.Duration, b *book.Book) (out []Request) {
	for _, name := range slices.Sorted(maps.Keys(e.destinations)) {
		d := e.destinations[name]
		if d.open == 0 && d.errands.over(now) {
			out = append(out, e.round(d, b)...)
		}
		if name != bank && d.following() && d.news.over(now) {
			d.follows, d.cursor.Wait = true, newsWithin
			cursor := d.cursor
			out = append(out, e.ask(0, Request{Peer: name, Verb: clearing.VerbPeerJobs, Body: &cursor, Reply: new(clearing.PeerJobsReply), Within: newsWithin + errandWithin}))
		}
	}
	switch {
	case !e.Open():
	case e.look == 0:
		e.look = now + lookForLost
	case !e.looking && now >= e.look:
		e.looking, e.look = true, now+lookForLost
		out = append(out, e.ask(0, Request{Peer: bank, Verb: clearing.VerbPeers, Body: &messages.Empty{}, Reply: new(clearing.PeersReply), Within: errandWithin}))
	}
	return out
}

func (d *destination) following() bool { return len(d.there) > 0 && !d.follows }

// round takes at most atOnce requests from the queue of a destination. They are sent together.
func (e *Errands) round(d *destination, b *book.Book) (out []Request) {
	for len(d.queue) > 0 && len(out) < atOnce {
		id := d.queue[0]
		d.queue = d.queue[1:]
		to, waits := e.queued[id]
		if !waits || to != d.name {
			continue
		}
		delete(e.queued, id)
		if r := b.Remote(id); r != nil {
			if errand, is := e.next(r); is && errand.to(r) == d.name {
				e.underWay[id] = true
				q := errand.request(r, e.authorisedFor, e.sought[id])
				if again := e.signed[id]; again != nil && errand == Send {
					q.Body.(*clearing.PeerSubmitRequest).Authorisation = *again
				}
				out = append(out, e.ask(errand, q))
			}
		}
	}
	d.open = len(out)
	return out
}

func (e *Errands) ask(errand Errand, q Request) Request {
	e.last++
	q.ID = e.last
	e.asked[q.ID] = &asked{Request: q, errand: errand}
	return q
}

// Wake returns when the next request is due, or false if no request will be due. It ignores the requests that ask this
// site's bank for its former peers.
func (e *Errands) Wake() (at messages.Duration, known bool) {
	sooner := func(t messages.Duration) {
		if !known || t < at {
			at, known = t, true
		}
	}
	for _, d := range e.destinations {
		if d.open == 0 && len(d.queue) > 0 {
			sooner(d.errands.until)
		}
		if d.following() {
			sooner(d.news.until)
		}
	}
	return at, known
}

// Answered takes the answer to a request. If it returns a command, the caller must commit the command and then call
// [Errands.Committed] with the same identifier.
func (e *Errands) Answered(now messages.Duration, b *book.Book, id uint64, reply any, err error) *book.Command {
	a := e.asked[id]
	if a == nil {
		return nil
	}
	if a.Verb == clearing.VerbPeers {
		e.parted(id, reply)
		return nil
	}
	var steps []book.Step
	if a.Job == 0 {
		steps, err = e.changes(b, a, reply, err)
	} else {
		steps, err = e.answer(b, a, reply, err)
	}
	if len(steps) == 0 || err != nil {
		e.done(now, b, id, err)
		return nil
	}
	return &book.Command{Advance: &book.Advance{Steps: steps}}
}

// parted takes the bank's answer about the peers with which this site has ended business. Without an answer nothing
// changes.
func (e *Errands) parted(id uint64, reply any) {
	delete(e.asked, id)
	e.looking = false
	list, is := reply.(*clearing.PeersReply)
	if !is {
		return
	}
	e.lost = map[messages.Name]bool{}
	for i := range list.Peers {
		e.lost[list.Peers[i].Peer] = list.Peers[i].Standing == clearing.PeerParted
	}
}

// Committed is called when the command that follows from an answer has been committed, or has failed with err.
func (e *Errands) Committed(now messages.Duration, b *book.Book, id uint64, err error) {
	e.done(now, b, id, err)
}

// answer returns the steps that follow from the answer to an errand. An error means that the errand must be sent again.
func (e *Errands) answer(b *book.Book, a *asked, reply any, err error) ([]book.Step, error) {
	d := e.destination(a.Peer)
	r := b.Remote(a.Job)
	if r == nil || e.signAgain(r, a, reply, err) {
		return nil, nil
	}
	step, err := a.errand.step(r, &a.Request, reply, err)
	switch {
	case err != nil:
		if messages.KindOf(err) != messages.Exhausted { // a peer that answers Exhausted is not silent
			d.silent = err
		}
		return nil, err
	case a.Verb == clearing.VerbAuthorise && r.Phase == book.Releasing:
		e.sought[a.Job] = true // the job was cancelled since: now its authorisation must be released
		return nil, nil
	case a.errand == inquire:
		delete(e.sought, a.Job)
	}
	if step == nil {
		return nil, nil
	}
	step.Job = a.Job
	return []book.Step{*step}, nil
}

// A peer can refuse an authorisation because the authorisation waited at this site for too long: meanwhile the peer has
// stopped trusting the key that signed it. signAgain asks the bank to sign the authorisation again, once. The peer's
// second answer is final.
func (e *Errands) signAgain(r *book.RemoteJob, a *asked, reply any, err error) (again bool) {
	switch _, before := e.signed[r.ID]; {
	case r.Phase != book.Sending:
		return false
	case a.errand == Send && !before && messages.KindOf(err) == messages.PermissionDenied:
		e.signed[r.ID] = nil
		return true
	case a.errand == Authorise && !messages.Waits(err):
		e.signed[r.ID] = r.Authorisation
		if signed, is := reply.(*clearing.SignedAuthorisation); err == nil && is {
			e.signed[r.ID] = signed
		}
		return true
	}
	return false
}

// done ends a request of an errand. It is called when the step with the request's answer has been committed, or when
// the request has failed with err.
func (e *Errands) done(now messages.Duration, b *book.Book, id uint64, err error) {
	a := e.asked[id]
	if a == nil {
		return
	}
	delete(e.asked, id)
	d := e.destination(a.Peer)
	if a.Job == 0 {
		e.followed(now, b, d, a.reply, err)
		return
	}
	delete(e.underWay, a.Job)
	e.note(b.Remote(a.Job))
	d.failed = cmp.Or(d.failed, err)
	if d.open--; d.open > 0 {
		return
	}
	if d.name != bank {
		d.blame(d.silent)
	}
	d.errands.after(now, d.failed, e.rng)
	d.failed, d.silent = nil, nil
}

func (d *destination) blame(err error) {
	d.trouble = ""
	if err != nil {
		d.trouble = messages.Detail(err)
	}
}

// Trouble tells users why a peer did not answer, or returns "".
func (e *Errands) Trouble(peer messages.Name) string {
	if d := e.destinations[peer]; d != nil {
		return d.trouble
	}
	return ""
}

// Open reports whether there are jobs between sites that have not ended.
func (e *Errands) Open() bool {
	for _, d := range e.destinations {
		if len(d.there) > 0 {
			return true
		}
	}
	return len(e.queued)+len(e.underWay)+len(e.visiting) > 0
}

// Ending returns commands that end three kinds of job: visiting jobs whose authorisations end soon, visiting jobs of
// sites that no longer trade with this site, and remote jobs whose site can no longer be asked about them.
func (e *Errands) Ending(now messages.Time, b *book.Book) (out []*book.Command) {
	late := map[messages.Name]*book.Decide{}
	for _, id := range slices.Sorted(maps.Keys(e.visiting)) {
		j := b.Job(id)
		if j == nil || !j.Active() || !e.lost[j.Visit.Home] && now < LastCall(j.Submitted, j.Visit.Until) {
			continue
		}
		d := late[j.Spec.Market]
		if d == nil {
			d = &book.Decide{Market: j.Spec.Market}
			late[j.Spec.Market] = d
			out = append(out, &book.Command{Decide: d})
		}
		if e.lost[j.Visit.Home] {
			d.Discard = append(d.Discard, book.Discarding{Job: id, Reason: "PeerLost", Message: "this site has parted from the job's home site, and can no longer charge that site"})
			continue
		}
		d.Discard = append(d.Discard, book.Discarding{Job: id, Reason: "AuthorisationEnds",
			Message: "the authorisation of the job's home site can be charged only until it ends, at " + j.Visit.Until.String(),
			Change:  []string{"smaller jobs, or longer authorisations by the home site"}})
	}
	if steps := b.EndUnreachable(now, e.lost); len(steps) > 0 {
		out = append(out, &book.Command{Advance: &book.Advance{Steps: steps}})
	}
	return out
}

// pause is the time for which a failed destination gets no requests.
type pause struct {
	fails int
	until messages.Duration
}

func (p *pause) over(now messages.Duration) bool { return now >= p.until }

func (p *pause) after(now messages.Duration, failed error, rng *rand.Rand) {
	if failed == nil {
		*p = pause{}
		return
	}
	p.fails++
	p.until = now + messages.Duration(retries.Wait(p.fails, rng.Float64()))
}
