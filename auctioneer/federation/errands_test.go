package federation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
)

func TestNext(t *testing.T) {
	for name, x := range map[string]struct {
		r    book.RemoteJob
		want Errand
		is   bool
	}{
		"authorising":                  {book.RemoteJob{Phase: book.Authorising}, Authorise, true},
		"sending":                      {book.RemoteJob{Phase: book.Sending}, Send, true},
		"sending, to end":              {book.RemoteJob{Phase: book.Sending, Cancelled: true}, Send, true},
		"there":                        {book.RemoteJob{Phase: book.There}, Recall, false},
		"there, to end":                {book.RemoteJob{Phase: book.There, Cancelled: true}, Recall, true},
		"there, to end, and told":      {book.RemoteJob{Phase: book.There, Cancelled: true, Told: true}, Recall, false},
		"refused, or never sent":       {book.RemoteJob{Phase: book.Releasing}, Release, true},
		"over, whatever was before it": {book.RemoteJob{Phase: book.Over, Cancelled: true}, 0, false},
	} {
		if got, is := Next(&x.r); is != x.is || is && got != x.want {
			t.Errorf("%s: got errand %v, %v", name, got, is)
		}
	}
}

// trip has what a test needs: a book with jobs at other sites, the next requests about these jobs (errands), and a
// clock.
type trip struct {
	*testing.T
	book *book.Book
	*Errands
	now messages.Duration

	standing clearing.PeerStanding // standing of every peer, as the bank reports it
}

func newTrip(t *testing.T) *trip {
	tr := &trip{T: t, book: book.New(), Errands: NewErrands(messages.Duration(time.Hour), rand.New(rand.NewPCG(1, 1)))}
	tr.book.Watch(true)
	return tr
}

func (t *trip) do(c *book.Command) any {
	c.At = now
	result := t.book.Apply(c)
	t.Changed(t.book, t.book.TakeChanges().Jobs)
	return result
}

func (t *trip) step(s book.Step) any {
	return t.do(&book.Command{Advance: &book.Advance{Steps: []book.Step{s}}})
}

func (t *trip) sends(peer messages.Name) messages.JobID {
	t.Helper()
	key := fmt.Sprint(t.book.LastJob())
	p, ok := t.do(&book.Command{EnterRemote: &book.EnterRemote{Account: "ada", Key: key, Digest: []byte(key), Payer: "ada", Peer: peer,
		Spec: &job.JobSpec{Name: "n", Budget: 5 * c, Stages: []job.Stage{{Name: "a", Tasks: 3}}}}}).(book.RemoteReceipt)
	if !ok {
		t.Fatal("the job was not taken")
	}
	return p.Job
}

func (t *trip) arrived(peer messages.Name) messages.JobID {
	t.Helper()
	id := t.sends(peer)
	t.step(book.Step{Job: id, Authorised: &clearing.SignedAuthorisation{}})
	t.step(book.Step{Job: id, Arrived: &job.JobSummary{State: job.Running}})
	return id
}

// This method answers the due requests about the standing of peers. It returns the other due requests, which must have
// the given verbs.
func (t *trip) due(verbs ...string) []Request {
	t.Helper()
	list := slices.DeleteFunc(t.Due(t.now, t.book), func(q Request) bool {
		if q.Verb == clearing.VerbPeers {
			t.answers(q, &clearing.PeersReply{Peers: []clearing.PeerReply{{Peer: "east", Standing: t.standing}}}, nil)
		}
		return q.Verb == clearing.VerbPeers
	})
	got := make([]string, len(list))
	for i := range list {
		got[i] = list[i].Verb
	}
	if fmt.Sprint(got) != fmt.Sprint(verbs) {
		t.Fatalf("due are %v, want %v", got, verbs)
	}
	return list
}

// answers passes the answer of a request to the errands. If the errands reply with a command, answers carries it out in
// the book, and reports to the errands that it was committed.
func (t *trip) answers(q Request, reply any, err error) {
	if c := t.Answered(t.now, t.book, q.ID, reply, err); c != nil {
		t.do(c)
		t.Committed(t.now, t.book, q.ID, nil)
	}
}

func (t *trip) is(id messages.JobID, phase book.RemotePhase, reason string) {
	t.Helper()
	if r := t.book.Remote(id); r.Phase != phase || r.Status.Reason != reason {
		t.Errorf("job %d is %v: %v, %s; want %v, %s", id, r.Phase, r.Status.State, r.Status.Reason, phase, reason)
	}
}

const longest = messages.Duration(4 * time.Second) // the longest usual wait between two tries

var (
	silent = messages.Errorf(messages.Unavailable, "nobody answers")
	forbid = messages.Errorf(messages.Invalid, "no")
)

// An errand is a request that the auctioneer must send for a remote job. The test answers each errand, so that the job
// enters its next phase. In the end, the book must have what the peer reports about the job.
func TestAJobGoesAndEnds(t *testing.T) {
	tr := newTrip(t)
	id := tr.sends("east")
	q := tr.due(clearing.VerbAuthorise)[0]
	if r := q.Body.(*clearing.AuthoriseRequest); q.Peer != "" || r.Amount != 5*c || r.Peer != "east" || r.Key != clearing.RemoteJobKey(id) || r.Interval != messages.Duration(time.Hour) {
		t.Errorf("the bank is asked %+v", r)
	}
	tr.due() // the request is sent once
	tr.answers(q, &clearing.SignedAuthorisation{}, nil)
	q = tr.due(clearing.VerbPeerSubmit)[0]
	tr.answers(q, &clearing.PeerSubmitReply{Job: job.JobSummary{State: job.Waiting, Reason: "Waiting"}}, nil)
	tr.is(id, book.There, "Waiting")
	q = tr.due(clearing.VerbPeerJobs)[0]
	tr.answers(q, &clearing.PeerJobsReply{Epoch: 7, Next: 3, Jobs: []job.JobSummary{{Job: id, State: job.Completed, Reason: "Completed", Charged: 9 * c}}}, nil)
	tr.is(id, book.Over, "Completed")
	if charged := tr.book.Remote(id).Status.Charged; charged != 5*c {
		t.Errorf("the peer was trusted to have charged %v", charged)
	}
	q = tr.due(clearing.VerbRevoke)[0] // the bank is told of the end: it frees what the peer does not charge within a day
	if r := q.Body.(*clearing.RevokeRequest); q.Peer != "" || !r.Ended || r.ID != clearing.RemoteJobAuthorisation(id) {
		t.Errorf("the bank is asked %+v", r)
	}
	tr.answers(q, nil, messages.Errorf(messages.NotFound, "it was charged"))
	tr.due()
	if _, waits := tr.Wake(); waits || tr.Open() {
		t.Error("something is due though every job is over")
	}
}

// A silent peer gets requests at growing intervals. Other peers do not wait for it.
func TestASilentPeerKeepsNobodyWaiting(t *testing.T) {
	tr := newTrip(t)
	for _, peer := range []messages.Name{"east", "north"} {
		tr.step(book.Step{Job: tr.sends(peer), Authorised: &clearing.SignedAuthorisation{}})
	}
	list := tr.due(clearing.VerbPeerSubmit, clearing.VerbPeerSubmit)
	tr.answers(list[0], nil, silent)
	if list[0].Peer != "east" || tr.Trouble("east") == "" || tr.Trouble("north") != "" {
		t.Errorf("silent are %q, %q", tr.Trouble("east"), tr.Trouble("north"))
	}
	tr.due()
	tr.answers(list[1], &clearing.PeerSubmitReply{}, nil)
	tr.due(clearing.VerbPeerJobs)
	for last := messages.Duration(0); ; {
		at, waits := tr.Wake()
		if !waits || at <= tr.now || at-tr.now > 3*longest/2 {
			t.Fatalf("at %v it wakes at %v", tr.now, at)
		}
		if last = max(last, at-tr.now); last > longest {
			break
		}
		tr.due()
		tr.now = at
		tr.answers(tr.due(clearing.VerbPeerSubmit)[0], nil, silent)
	}
	tr.now += 2 * longest
	tr.answers(tr.due(clearing.VerbPeerSubmit)[0], &clearing.PeerSubmitReply{}, nil)
	if tr.Trouble("east") != "" {
		t.Error("a peer that answers is still said to be silent")
	}
}

// Errands to one destination are sent in rounds of limited size. Failed errands must not delay other errands.
func TestRoundsAreBoundedAndFair(t *testing.T) {
	tr := newTrip(t)
	for range atOnce + 5 {
		tr.sends("east")
	}
	first := tr.Due(0, tr.book)
	if len(first) != atOnce {
		t.Fatalf("%d at once", len(first))
	}
	for _, q := range first {
		tr.due()
		tr.answers(q, nil, messages.Errorf(messages.Exhausted, "the disk is almost full")) // this answer decides nothing
	}
	tr.due()
	tr.now += longest
	second := tr.Due(tr.now, tr.book)
	if len(second) != atOnce || second[0].Job != atOnce+1 || second[5].Job != 1 {
		t.Errorf("%d in the second round, from job %d", len(second), second[0].Job)
	}
}

func TestRefused(t *testing.T) {
	tr := newTrip(t)
	poor, bad := tr.sends("east"), tr.sends("east")
	list := tr.due(clearing.VerbAuthorise, clearing.VerbAuthorise)
	tr.answers(list[0], nil, messages.Errorf(messages.Insufficient, "too little"))
	tr.answers(list[1], &clearing.SignedAuthorisation{}, nil)
	tr.is(poor, book.Releasing, "RefusedByBank")
	list = tr.due(clearing.VerbAuthorise, clearing.VerbPeerSubmit) // nobody knows whether there is an authorisation to release
	tr.answers(list[0], nil, messages.Errorf(messages.Insufficient, "too little"))
	tr.answers(list[1], nil, forbid)
	tr.is(bad, book.Releasing, "RefusedBySite")
	list = tr.due(clearing.VerbRevoke, clearing.VerbPeerCancel) // the peer may have accepted an earlier request
	tr.answers(list[0], nil, messages.Errorf(messages.NotFound, "there is none"))
	tr.answers(list[1], nil, silent)
	tr.now += longest
	tr.answers(tr.due(clearing.VerbPeerCancel)[0], nil, messages.Errorf(messages.NotFound, "there is none"))
	tr.answers(tr.due(clearing.VerbRevoke)[0], &clearing.ClearingReply{}, nil)
	tr.is(poor, book.Over, "RefusedByBank")
	tr.is(bad, book.Over, "RefusedBySite")
	tr.due()
}

// A job waits while the bank's key is rotated, and its peer trusts only the new key. The bank must sign the job's
// authorisation again. If the peer refuses the new signature too, or if the bank does not sign, the job must be
// refused.
func TestAnAuthorisationIsSignedAgain(t *testing.T) {
	by := func(key string) *clearing.SignedAuthorisation {
		return &clearing.SignedAuthorisation{Signature: []byte(key)}
	}
	old := messages.Errorf(messages.PermissionDenied, "the signature is not that of the bank")
	for name, c := range map[string]struct {
		asked []error // the bank's answers to the second request
		key   string  // the key that signed the authorisation that is sent
		says  error   // the peer's answer
		phase book.RemotePhase
	}{
		"a new key":         {[]error{nil}, "new", nil, book.There},
		"a bank in trouble": {[]error{silent, nil}, "new", nil, book.There},
		"refused twice":     {[]error{nil}, "new", old, book.Releasing},
		"not signed again":  {[]error{forbid}, "old", old, book.Releasing},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTrip(t)
			id := tr.sends("east")
			tr.answers(tr.due(clearing.VerbAuthorise)[0], by("old"), nil)
			tr.answers(tr.due(clearing.VerbPeerSubmit)[0], nil, old)
			tr.is(id, book.Sending, "Sending")
			for _, err := range c.asked {
				q := tr.due(clearing.VerbAuthorise)[0]
				if r := q.Body.(*clearing.AuthoriseRequest); q.Peer != "" || r.Key != clearing.RemoteJobKey(id) {
					t.Errorf("%q is asked %+v", q.Peer, r)
				}
				tr.answers(q, by("new"), err)
				tr.now += longest
			}
			q := tr.due(clearing.VerbPeerSubmit)[0]
			if got := q.Body.(*clearing.PeerSubmitRequest).Authorisation.Signature; string(got) != c.key {
				t.Errorf("signed with the %s key, want the %s one", got, c.key)
			}
			tr.answers(q, &clearing.PeerSubmitReply{}, c.says)
			if r := tr.book.Remote(id); r.Phase != c.phase {
				t.Errorf("job %d is %v, want %v", id, r.Phase, c.phase)
			}
		})
	}
}

// A job for another site is cancelled while this site waits for the bank's authorisation. The job must not be sent to
// the other site, and its credits must be released.
func TestCancelledBeforeItIsSent(t *testing.T) {
	tr := newTrip(t)
	id := tr.sends("east")
	q := tr.due(clearing.VerbAuthorise)[0]
	tr.step(book.Step{Job: id, Cancel: "ada"})
	tr.due() // the bank has not answered yet
	tr.answers(q, &clearing.SignedAuthorisation{}, nil)
	q = tr.due(clearing.VerbRevoke)[0]
	tr.answers(q, nil, silent)
	tr.now += longest
	tr.answers(tr.due(clearing.VerbRevoke)[0], &clearing.ClearingReply{}, nil)
	tr.is(id, book.Over, "CancelledByUser")
}

// A job is cancelled while it is sent. The request to end it must be repeated until the peer has answered.
func TestCancelledWhileItIsSent(t *testing.T) {
	tr := newTrip(t)
	id := tr.sends("east")
	tr.step(book.Step{Job: id, Authorised: &clearing.SignedAuthorisation{}})
	q := tr.due(clearing.VerbPeerSubmit)[0]
	tr.step(book.Step{Job: id, Cancel: "ada"})
	tr.answers(q, &clearing.PeerSubmitReply{Job: job.JobSummary{State: job.Waiting}}, nil)
	list := tr.due(clearing.VerbPeerCancel, clearing.VerbPeerJobs)
	tr.answers(list[0], nil, forbid) // this answer does not say that the peer ends the job
	tr.now += longest
	tr.answers(tr.due(clearing.VerbPeerCancel)[0], nil, messages.Errorf(messages.Ended, "it has ended"))
	if r := tr.book.Remote(id); !r.Told || r.Phase != book.There {
		t.Errorf("the peer was told: %v, in phase %v", r.Told, r.Phase)
	}
	tr.due()
}

// The log is full, so the answers to some requests cannot be committed. These requests must be sent again.
func TestWhatIsNotCommittedIsAskedAgain(t *testing.T) {
	tr := newTrip(t)
	full := messages.Errorf(messages.Exhausted, "the disk is almost full")
	id := tr.sends("east")
	for range 2 {
		q := tr.due(clearing.VerbAuthorise)[0]
		if tr.Answered(tr.now, tr.book, q.ID, &clearing.SignedAuthorisation{}, nil) == nil {
			t.Fatal("nothing to commit")
		}
		tr.due()
		tr.Committed(tr.now, tr.book, q.ID, full)
		tr.now += 2 * longest
	}
	tr.step(book.Step{Job: id, Authorised: &clearing.SignedAuthorisation{}})
	tr.step(book.Step{Job: id, Arrived: &job.JobSummary{State: job.Waiting}})
	for range 2 {
		q := tr.due(clearing.VerbPeerJobs)[0]
		if cursor := q.Body.(*clearing.PeerJobsRequest); cursor.After != 0 {
			t.Errorf("the cursor has moved: %+v", cursor)
		}
		tr.Answered(tr.now, tr.book, q.ID, &clearing.PeerJobsReply{Epoch: 7, Next: 3, Jobs: []job.JobSummary{{Job: id, State: job.Running}}}, nil)
		tr.Committed(tr.now, tr.book, q.ID, full)
		tr.now += 2 * longest
	}
}

// A peer returns all its jobs, page by page, but leaves some out. It must be asked for each missing job by number.
func TestAWalkFindsAForgottenJob(t *testing.T) {
	tr := newTrip(t)
	told, forgotten, late := tr.arrived("east"), tr.arrived("east"), tr.arrived("east")
	other := tr.arrived("north")
	list := tr.due(clearing.VerbPeerJobs, clearing.VerbPeerJobs)
	page := func(whole, more bool, next uint64, ids ...messages.JobID) *clearing.PeerJobsReply {
		r := &clearing.PeerJobsReply{Epoch: 7, Next: next, Whole: whole, More: more}
		for _, id := range ids {
			r.Jobs = append(r.Jobs, job.JobSummary{Job: id, State: job.Running, Reason: "Running"})
		}
		return r
	}
	tr.answers(list[0], page(true, true, 1, told, other), nil) // the job `other` is not at this peer
	q := tr.due(clearing.VerbPeerJobs)[0]
	if cursor := q.Body.(*clearing.PeerJobsRequest); cursor.Epoch != 7 || cursor.After != 1 {
		t.Errorf("the cursor is %+v", cursor)
	}
	tr.answers(q, page(false, false, 2), nil)
	list = tr.due(clearing.VerbPeerJob, clearing.VerbPeerJob, clearing.VerbPeerJobs)
	if list[0].Job != forgotten || list[1].Job != late {
		t.Errorf("asked by name are %d, %d", list[0].Job, list[1].Job)
	}
	tr.answers(list[0], nil, messages.Errorf(messages.NotFound, "there is no such job"))
	tr.answers(list[1], nil, silent)
	tr.is(forgotten, book.Releasing, "ForgottenThere")
	tr.now += longest
	list = tr.due(clearing.VerbRevoke, clearing.VerbPeerJob)
	tr.answers(list[0], &clearing.ClearingReply{}, nil) // the credits that were set aside for the job are given back
	tr.is(forgotten, book.Over, "ForgottenThere")
	tr.answers(list[1], &job.JobDetail{JobSummary: job.JobSummary{State: job.Completed, Reason: "Completed"}}, nil)
	tr.is(late, book.Over, "Completed")
	tr.is(told, book.There, "Running")
	tr.is(other, book.There, "")
	tr.answers(tr.due(clearing.VerbRevoke)[0], &clearing.ClearingReply{}, nil)
	tr.due()
}

// An answer of the wrong type changes nothing.
func TestAStrangeAnswerDecidesNothing(t *testing.T) {
	tr := newTrip(t)
	id := tr.sends("east")
	tr.answers(tr.due(clearing.VerbAuthorise)[0], &messages.Empty{}, nil)
	tr.is(id, book.Authorising, "Authorising")
	id = tr.arrived("north")
	tr.answers(tr.due(clearing.VerbPeerJobs)[0], nil, nil)
	tr.is(id, book.There, "")
	if tr.Answered(tr.now, tr.book, 999, nil, nil) != nil {
		t.Error("an answer to nothing is a command")
	}
}

// When business with a peer ends, the jobs at this peer must end at once, whether or not the peer has accepted them. A
// job that was already cancelled must end as cancelled.
func TestJobsAtALostPeerEnd(t *testing.T) {
	tr := newTrip(t)
	there, sent, cancelled, other := tr.arrived("east"), tr.sends("east"), tr.arrived("east"), tr.arrived("north")
	tr.step(book.Step{Job: sent, Authorised: &clearing.SignedAuthorisation{Authorisation: clearing.Authorisation{Issued: now, Interval: messages.Duration(time.Hour)}}})
	tr.step(book.Step{Job: cancelled, Cancel: "ada"})
	look := func() {
		tr.Due(tr.now, tr.book)
		tr.now += lookForLost
		for _, q := range tr.Due(tr.now, tr.book) {
			if q.Verb == clearing.VerbPeers {
				tr.answers(q, &clearing.PeersReply{Peers: []clearing.PeerReply{{Peer: "east", Standing: tr.standing}, {Peer: "north"}}}, nil)
			}
		}
		for _, c := range tr.Ending(0, tr.book) {
			tr.do(c)
		}
	}
	look()
	tr.is(there, book.There, "")
	tr.standing = clearing.PeerParted
	look()
	tr.is(there, book.Over, "PeerLost")
	tr.is(sent, book.Over, "PeerLost")
	tr.is(cancelled, book.Over, "CancelledByUser")
	tr.is(other, book.There, "")
}

// A peer has refused a job. But an earlier request with the same job arrives late, and so the peer runs the job after
// all. The peer must be asked to end the job before the authorisation is released. If the peer does not answer, the
// site must stop asking after a limited time.
func TestARefusedJobIsRecalled(t *testing.T) {
	tr := newTrip(t)
	ends := clearing.Authorisation{Issued: now, Interval: messages.Duration(time.Hour)}
	var ids [2]messages.JobID
	for i := range ids {
		ids[i] = tr.sends("east")
		tr.step(book.Step{Job: ids[i], Authorised: &clearing.SignedAuthorisation{Authorisation: ends}})
	}
	for _, q := range tr.due(clearing.VerbPeerSubmit, clearing.VerbPeerSubmit) {
		tr.answers(q, nil, forbid)
	}
	list := tr.due(clearing.VerbPeerCancel, clearing.VerbPeerCancel)
	tr.answers(list[0], &job.CancelReply{State: job.Running}, nil)
	tr.answers(list[1], nil, silent)
	tr.answers(tr.due(clearing.VerbRevoke)[0], &clearing.ClearingReply{}, nil)
	tr.is(ids[0], book.Over, "RefusedBySite")
	tr.is(ids[1], book.Releasing, "RefusedBySite")
	for _, c := range tr.Ending(ends.Frees()+1, tr.book) {
		tr.do(c)
	}
	tr.is(ids[1], book.Over, "RefusedBySite")
}
