package sites

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/candor-grid/candor/auctioneer"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/money"
)

func verbOf(subject string) string { return strings.Split(subject, ".")[3] }

// TestALeaderIsLostAtEveryStep loses the leader of each actor at each step of a remote job, before or after the step's
// request is handled. The job must run once and be paid for once.
func TestALeaderIsLostAtEveryStep(t *testing.T) {
	victims := map[string]func(*realm) *mailbox.Memory{
		"home":      func(r *realm) *mailbox.Memory { return r.west.log },
		"home bank": func(r *realm) *mailbox.Memory { return r.west.bankLog },
		"away":      func(r *realm) *mailbox.Memory { return r.east.log },
		"away bank": func(r *realm) *mailbox.Memory { return r.east.bankLog },
	}
	steps := []string{clearing.VerbAuthorise, clearing.VerbPeerSubmit, clearing.VerbAccept, clearing.VerbPeerJobs, clearing.VerbCharge, clearing.VerbInstruct}
	for who, victim := range victims {
		for _, step := range steps {
			for _, heard := range []bool{false, true} {
				name := who + " before " + step
				if heard {
					name = who + " after " + step
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					r := newRealm(t)
					var lost atomic.Bool
					r.meddle(func(_ messages.Name, subject string, send func() ([]byte, error)) ([]byte, error) {
						if verbOf(subject) != step || !lost.CompareAndSwap(false, true) {
							return send()
						}
						if heard {
							_, _ = send() // the answer of the first request is lost
						}
						box := victim(r)
						box.Depose()
						box.Elect()
						return nil, messages.Errorf(messages.Unavailable, "nobody leads")
					})
					id := r.west.submit("k", "east", roamingSpec(3)).Job
					r.east.runs(3)
					r.west.ranOnce(id, 3)
					if !lost.Load() {
						t.Errorf("nobody ever asked for %s", step)
					}
				})
			}
		}
	}
}

// ranOnce checks alice's job: it must have succeeded, run once at east, and have been paid for once.
func (s *realmSite) ranOnce(id messages.JobID, tasks int) {
	s.Helper()
	job := s.ends(id)
	if job.State != jobmsg.Completed || job.Done != tasks || job.Charged != 10*messages.Credit {
		s.Errorf("it ended as %+v", job.JobSummary)
	}
	at := tell[jobmsg.JobsReply](s.east, "ops", messages.Auctioneer, messages.VerbJobs, jobmsg.JobsRequest{All: true}).Jobs
	if len(at) != 1 {
		s.Errorf("%d jobs at east", len(at))
	}
	s.settled()
	if b := s.east.account(money.SiteAccount).Balance; b != 10*messages.Credit {
		s.Errorf("site east has %v", b)
	}
	if a := s.west.account("alice"); a.Balance != realmFunds-10*messages.Credit || a.Reserved != 0 {
		s.Errorf("alice has %+v", a)
	}
}

// When every request of every actor is delivered twice, a remote job must still run once and be paid for once.
func TestEveryMessageIsRepeated(t *testing.T) {
	r := newRealm(t)
	r.meddle(func(_ messages.Name, subject string, send func() ([]byte, error)) ([]byte, error) {
		first, err := send()
		if verbOf(subject) == clearing.VerbPeerJobs { // this request is not repeated, because it waits for news each time
			return first, err
		}
		if _, err := send(); err != nil && verbOf(subject) != clearing.VerbInstruct {
			return nil, err
		}
		return first, err
	})
	id := r.west.submit("k", "east", roamingSpec(3)).Job
	r.east.runs(3)
	r.west.ranOnce(id, 3)
}

// TestASiteIsCutOff cuts off the site that runs a job. This site must continue to run the job and charge for it. The
// home site must show the last known state, serve its users, and learn everything after the cut.
func TestASiteIsCutOff(t *testing.T) {
	r := newRealm(t)
	id := r.west.submit("k", "east", roamingSpec(5)).Job
	await.Until(r.east, "tasks run", func() bool { r.east.claim(); return len(r.east.running) == 4 })
	await.Until(r.west, "west knows", func() bool { return r.west.known(id).Running == 4 })
	r.cut("east")
	r.east.finish()
	r.east.runs(1)
	await.Until(r.east, "it is over at east", func() bool {
		return tell[jobmsg.JobsReply](r.east, "ops", messages.Auctioneer, messages.VerbJobs, jobmsg.JobsRequest{All: true}).Jobs[0].State == jobmsg.Completed
	})
	job := r.west.job(id)
	if job.State != jobmsg.Running || job.Away.Trouble == "" || job.Away.Known == 0 {
		t.Errorf("in the cut: %+v, %+v", job.JobSummary, job.Away)
	}
	if w := r.west.why(id); w.Reason != "SiteSilent" || !strings.Contains(w.Message, "does not answer") || !strings.Contains(w.Message, "the job was Running") {
		t.Errorf("in the cut: %+v", w)
	}
	err := r.west.once("alice", clearing.VerbOutput, clearing.OutputRequest{
		Node: "n1", Logs: agent.LogsRequest{Attempt: messages.Attempt{Task: messages.TaskRef{Job: id}, Number: 1}}})
	if messages.KindOf(err) != messages.Unavailable || !strings.Contains(err.Error(), "site east") {
		t.Errorf("output in the cut: %v", err)
	}
	own := r.west.submit("own", "", roamingSpec(2)).Job
	r.west.runs(2)
	r.west.ends(own)
	if a := r.west.account("alice"); a.Reserved != 10*messages.Credit {
		t.Errorf("in the cut alice has %+v", a)
	}
	r.meddle(nil)
	if job := r.west.ends(id); job.State != jobmsg.Completed || job.Charged != 10*messages.Credit {
		t.Errorf("after the cut: %+v", job.JobSummary)
	}
	r.settled()
}

// TestCancelAJobAtAnotherSite cancels a job before it was authorised, while the other site is silent, and while the job
// runs. If the job was running, it must pay its whole budget.
func TestCancelAJobAtAnotherSite(t *testing.T) {
	r := newRealm(t)
	cancel := func(id messages.JobID) jobmsg.CancelReply {
		return tell[jobmsg.CancelReply](r.west, "alice", messages.Auctioneer, messages.VerbCancel, jobmsg.CancelRequest{Job: id})
	}
	runs := r.west.submit("runs", "east", roamingSpec(2)).Job
	await.Until(r.east, "it runs", func() bool { r.east.claim(); return len(r.east.running) == 2 })
	if c := cancel(runs); c.Away == nil || c.Away.Trouble != "" {
		t.Errorf("answered %+v, %+v", c, c.Away)
	}
	if job := r.west.ends(runs); job.State != jobmsg.Cancelled || job.Reason != "CancelledByUser" || job.Charged != job.Budget {
		t.Errorf("it ended as %+v", job.JobSummary)
	}
	if _, err := asks[jobmsg.CancelReply](r.west, "alice", messages.Auctioneer, messages.VerbCancel, jobmsg.CancelRequest{Job: runs}); messages.KindOf(err) != messages.Ended {
		t.Errorf("cancelled again: %v", err)
	}
	r.cut("east")
	sent := r.west.submit("sent", "east", roamingSpec(2)).Job
	if c := cancel(sent); c.Away == nil || c.Away.Trouble == "" {
		t.Errorf("in the cut: answered %+v, %+v", c, c.Away)
	}
	if job := r.west.job(sent); job.State != jobmsg.Waiting || job.Reason != "Cancelling" {
		t.Errorf("in the cut: %+v", job.JobSummary)
	}
	r.meddle(nil)
	if job := r.west.ends(sent); job.State != jobmsg.Cancelled {
		t.Errorf("it ended as %+v", job.JobSummary)
	}
	r.meddle(func(_ messages.Name, subject string, send func() ([]byte, error)) ([]byte, error) {
		if verbOf(subject) == clearing.VerbAuthorise {
			return nil, messages.Errorf(messages.Unavailable, "the bank is away")
		}
		return send()
	})
	kept := r.west.submit("kept", "east", roamingSpec(2)).Job
	cancel(kept)
	if job := r.west.job(kept); job.State != jobmsg.Cancelled || job.Away.Phase != "Releasing" {
		t.Errorf("it is %+v, %+v", job.JobSummary, job.Away)
	}
	r.meddle(nil)
	await.Until(r.west, "nothing is set aside", func() bool { return r.west.job(kept).Away.Phase == "Ended" && r.west.account("alice").Reserved == 0 })
	r.settled()
	if a := r.west.account("alice"); a.Balance != realmFunds-10*messages.Credit {
		t.Errorf("alice has %+v", a)
	}
}

// TestCancelAJobThatIsNotCharged: a host says that a job is complete, but does not charge for it. The user cancels the
// job. The site must tell the user that the host has not charged, and must ask the host to give up the held credits. An
// honest host that charges late must still be paid.
func TestCancelAJobThatIsNotCharged(t *testing.T) {
	r := newRealm(t)
	r.meddle(func(_ messages.Name, subject string, send func() ([]byte, error)) ([]byte, error) {
		if verbOf(subject) == clearing.VerbCharge {
			return nil, messages.Errorf(messages.Unavailable, "the bank is away")
		}
		return send()
	})
	id := r.west.submit("k", "east", roamingSpec(1)).Job
	r.east.runs(1)
	await.Until(r.west, "west knows that the host claims it complete", func() bool { s := r.west.known(id).State; return s == jobmsg.Settling || s == jobmsg.Completed })
	cancel := func() error {
		_, err := asks[jobmsg.CancelReply](r.west, "alice", messages.Auctioneer, messages.VerbCancel, jobmsg.CancelRequest{Job: id})
		return err
	}
	for range 2 {
		if err := cancel(); messages.KindOf(err) != messages.Ended || !strings.Contains(err.Error(), "has not charged") {
			t.Errorf("cancelled: %v", err)
		}
	}
	many := tell[jobmsg.CancelReply](r.west, "alice", messages.Auctioneer, messages.VerbCancel, jobmsg.CancelRequest{Jobs: []messages.JobID{id}})
	if e := many.Jobs[0].Error; e == nil || e.Kind != messages.Ended || !strings.Contains(e.Message, "has not charged") {
		t.Errorf("cancelled with others: %v", e)
	}
	if _, err := asks[jobmsg.CancelReply](r.west, "bob", messages.Auctioneer, messages.VerbCancel, jobmsg.CancelRequest{Job: id}); messages.KindOf(err) != messages.NotFound {
		t.Errorf("cancelled by another account: %v", err)
	}
	await.Until(r.west, "the host has refused", func() bool { return r.west.account("alice").Reserved == 10*messages.Credit })
	r.meddle(nil)
	r.west.ranOnce(id, 1)
	if err := cancel(); messages.KindOf(err) != messages.Ended || strings.Contains(err.Error(), "has not charged") {
		t.Errorf("cancelled when it was charged: %v", err)
	}
}

// Each impossible job must be refused with the right kind of error, and change nothing.
func TestSubmissionsToOtherSitesAreRefused(t *testing.T) {
	r := newRealm(t)
	for _, c := range []struct {
		name string
		site messages.Name
		spec jobmsg.JobSpec
		kind messages.Kind
		text string
	}{
		{"no peer", "north", roamingSpec(1), messages.NotFound, "not a peer of west"},
		{"no name", "North!", roamingSpec(1), messages.Invalid, "site"},
		{"funds", "east", roamingSpec(1, func(s *jobmsg.JobSpec) { s.Budget = 101 * messages.Credit }), messages.Insufficient, ""},
		{"peer's limit", "east", roamingSpec(1, func(s *jobmsg.JobSpec) { s.Budget = 51 * messages.Credit }), messages.Insufficient, "would owe more than it may"},
		{"project", "east", roamingSpec(1, func(s *jobmsg.JobSpec) { s.Project = "lab" }), messages.NotFound, ""},
		{"market", "east", roamingSpec(1, func(s *jobmsg.JobSpec) { s.Market = "night" }), messages.NotFound, "night"},
		{"class", "east", roamingSpec(1, func(s *jobmsg.JobSpec) { s.Stages[0].Class = "gpu" }), messages.NotFound, "gpu"},
		{"after", "east", roamingSpec(1, func(s *jobmsg.JobSpec) { s.AfterJobs = []messages.JobID{1} }), messages.Invalid, "after_jobs"},
		{"contract of another site", "east", roamingSpec(1, func(s *jobmsg.JobSpec) { s.Contract = "north/q1-1" }), messages.Invalid, "belongs to site north"},
		{"contract", "east", roamingSpec(1, func(s *jobmsg.JobSpec) { s.Contract = "east/q1-1" }), messages.Expired, "ask for another"},
	} {
		_, err := asks[jobmsg.SubmitReply](r.west, "alice", messages.Auctioneer, messages.VerbSubmit, jobmsg.SubmitRequest{Key: c.name, Spec: c.spec, Site: c.site})
		if err == nil || messages.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want a refusal of kind %v with %q", c.name, err, c.kind, c.text)
		}
		if _, again := asks[jobmsg.SubmitReply](r.west, "alice", messages.Auctioneer, messages.VerbSubmit, jobmsg.SubmitRequest{Key: c.name, Spec: c.spec, Site: c.site}); messages.KindOf(again) != c.kind {
			t.Errorf("%s again: %v", c.name, again)
		}
	}
	await.Until(r.west, "nothing is set aside", func() bool { return r.west.account("alice").Reserved == 0 })
	r.settled()
	if jobs := tell[jobmsg.JobsReply](r.east, "ops", messages.Auctioneer, messages.VerbJobs, jobmsg.JobsRequest{All: true}).Jobs; len(jobs) != 0 {
		t.Errorf("east has %+v", jobs)
	}
	id := r.west.submit("own name", "west", roamingSpec(1)).Job
	r.west.runs(1)
	if job := r.west.ends(id); job.Away != nil {
		t.Errorf("a job for its own site went to %+v", job.Away)
	}
	if _, err := asks[jobmsg.SubmitReply](r.west, "alice", messages.Auctioneer, messages.VerbSubmit, jobmsg.SubmitRequest{Key: "own name", Spec: roamingSpec(1), Site: "east"}); messages.KindOf(err) != messages.Conflict {
		t.Errorf("a key of a job of this site, for another: %v", err)
	}
}

// A site that lies to its peer about authorisations must gain nothing.
func TestAuthorisationsOfOtherJobs(t *testing.T) {
	r := newRealm(t)
	r.meddle(func(_ messages.Name, subject string, send func() ([]byte, error)) ([]byte, error) {
		if verbOf(subject) == clearing.VerbPeerSubmit {
			return nil, messages.Errorf(messages.Unavailable, "held back")
		}
		return send()
	})
	r.west.submit("k", "east", roamingSpec(1))
	good := tell[clearing.SignedAuthorisation](r.west, "$auctioneer", messages.Bank, clearing.VerbAuthorise, clearing.AuthoriseRequest{
		Key: clearing.RemoteJobKey(7), Member: "alice", Peer: "east", Amount: 10 * messages.Credit, Interval: messages.Duration(time.Hour), Job: 7})
	request := func(change func(*clearing.PeerSubmitRequest)) clearing.PeerSubmitRequest {
		q := clearing.PeerSubmitRequest{Job: 7, Account: "alice", Spec: roamingSpec(1), Authorisation: good}
		change(&q)
		return q
	}
	for name, c := range map[string]struct {
		caller messages.Name
		kind   messages.Kind
		change func(*clearing.PeerSubmitRequest)
	}{
		"a user":           {"alice", messages.PermissionDenied, func(*clearing.PeerSubmitRequest) {}},
		"an actor":         {"$bank", messages.PermissionDenied, func(*clearing.PeerSubmitRequest) {}},
		"another site":     {"$north", messages.PermissionDenied, func(*clearing.PeerSubmitRequest) {}},
		"another job":      {"$west", messages.Conflict, func(q *clearing.PeerSubmitRequest) { q.Job = 8 }},
		"another account":  {"$west", messages.Invalid, func(q *clearing.PeerSubmitRequest) { q.Account = "bob" }},
		"too little":       {"$west", messages.Insufficient, func(q *clearing.PeerSubmitRequest) { q.Spec.Budget = 11 * messages.Credit }},
		"altered":          {"$west", messages.PermissionDenied, func(q *clearing.PeerSubmitRequest) { q.Authorisation.Authorisation.Amount *= 2 }},
		"longer than paid": {"$west", messages.Invalid, func(q *clearing.PeerSubmitRequest) { q.Spec.Length = messages.Duration(2 * time.Hour) }},
	} {
		if _, err := asks[clearing.PeerSubmitReply](r.east, c.caller, messages.Auctioneer, clearing.VerbPeerSubmit, request(c.change)); messages.KindOf(err) != c.kind {
			t.Errorf("%s: got %v, want a refusal of kind %v", name, err, c.kind)
		}
	}
	first := tell[clearing.PeerSubmitReply](r.east, "$west", messages.Auctioneer, clearing.VerbPeerSubmit, request(func(*clearing.PeerSubmitRequest) {}))
	if first.Job.Job != 7 {
		t.Errorf("answered %+v", first)
	}
	if _, err := asks[clearing.PeerSubmitReply](r.east, "$west", messages.Auctioneer, clearing.VerbPeerSubmit,
		request(func(q *clearing.PeerSubmitRequest) { q.Spec.Name = "another" })); messages.KindOf(err) != messages.Conflict {
		t.Errorf("the same number for another job: %v", err)
	}
	// The job runs at site east. Its user tries to revoke the authorisation for it. The work has begun, so east must
	// still be paid.
	tell[clearing.ClearingReply](r.west, "alice", messages.Bank, clearing.VerbRevoke, clearing.RevokeRequest{ID: good.Authorisation.ID})
	r.east.runs(1)
	r.meddle(nil)
	r.east.runs(1)
	r.settled()
	if b := r.east.account(money.SiteAccount).Balance; b != 20*messages.Credit {
		t.Errorf("site east has %v", b)
	}
}

// TestAuthorisationsEnd lets the time of an authorisation run out while its job runs. The job must be ended before the
// authorisation expires, and the site must still charge the job's debt.
func TestAuthorisationsEnd(t *testing.T) {
	r := &realm{TB: t, network: bus.NewMemory()}
	r.west = r.start("west", func(c *auctioneer.Config) { c.RemoteFor = messages.Duration(time.Hour) })
	r.east = r.start("east")
	r.introduce(r.west, r.east)
	id := r.west.submit("k", "east", roamingSpec(4)).Job
	await.Until(r.east, "it runs", func() bool { r.east.claim(); return len(r.east.running) == 4 })
	if w := r.west.why(id); !strings.Contains(w.Message, "the job must end by") {
		t.Errorf("why: %+v", w)
	}
	r.ahead.Store(int64(55 * time.Minute / time.Microsecond))
	job := r.west.ends(id)
	if job.State != jobmsg.Discarded || job.Reason != "AuthorisationEnds" || job.Charged != 0 {
		t.Errorf("it ended as %+v", job.JobSummary)
	}
	if w := r.west.why(id); !strings.Contains(w.Message, "can be charged only until it ends") {
		t.Errorf("why: %+v", w)
	}
	r.settled()
}

// TestNothingIsLostOrDoubled lets users of three sites run jobs at each other's sites, while requests and answers are
// lost and repeated at random, and leaders fail.
func TestNothingIsLostOrDoubled(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r := &realm{TB: t, network: bus.NewMemory()}
			r.west, r.east, r.north = r.start("west"), r.start("east"), r.start("north")
			sites := []*realmSite{r.west, r.east, r.north}
			for i, s := range sites {
				r.introduce(s, sites[(i+1)%3])
			}
			r.meddle(unreliable(seed, sites))
			own := map[*realmSite][]messages.JobID{}
			for k := range 3 {
				for i, s := range sites {
					receipt := s.submit(fmt.Sprint(k), sites[(i+1+k%2)%3].name, roamingSpec(2, func(j *jobmsg.JobSpec) { j.Budget = 5 * messages.Credit }))
					own[s] = append(own[s], receipt.Job)
				}
			}
			for _, s := range sites {
				s.runs(6) // the tasks of the three jobs that the other sites have sent here
			}
			r.meddle(nil)
			for _, s := range sites {
				for _, id := range own[s] {
					if job := s.ends(id); job.State != jobmsg.Completed || job.Charged != 5*messages.Credit {
						t.Errorf("job %d of %s ended as %+v", id, s.name, job.JobSummary)
					}
				}
			}
			r.settled(sites...)
			for _, s := range sites {
				if a, own := s.account("alice"), s.account(money.SiteAccount); a.Balance != realmFunds-15*messages.Credit || own.Balance != 15*messages.Credit {
					t.Errorf("%s: alice has %v, the site %v", s.name, a.Balance, own.Balance)
				}
			}
		})
	}
}

// unreliable returns a function that disturbs requests between sites. The test passes it to meddle. Of the requests,
// the function loses 10 %, loses the answers to another 10 %, and sends another 10 % twice. During one request in
// forty, it makes a leader step down.
func unreliable(seed uint64, sites []*realmSite) func(messages.Name, string, func() ([]byte, error)) ([]byte, error) {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 9))
	return func(_ messages.Name, subject string, send func() ([]byte, error)) ([]byte, error) {
		mu.Lock()
		dice, site, kind := rng.IntN(40), sites[rng.IntN(len(sites))], rng.IntN(2)
		mu.Unlock()
		lost := messages.Errorf(messages.Unavailable, "lost")
		switch {
		case dice == 0:
			box := []*mailbox.Memory{site.log, site.bankLog}[kind]
			box.Depose()
			box.Elect()
		case dice < 5:
			return nil, lost
		case dice < 9:
			_, _ = send()
			return nil, lost
		case dice < 13 && verbOf(subject) != clearing.VerbPeerJobs:
			_, _ = send()
		}
		return send()
	}
}

// East's auctioneer loses its book while it runs a job of west. East must say that it does not know the job, and must
// not take the credits that are held for it.
func TestASiteForgets(t *testing.T) {
	r := newRealm(t)
	id := r.west.submit("k", "east", roamingSpec(2)).Job
	if err := r.east.auctioneer.Close(); err != nil {
		t.Fatal(err)
	}
	r.east.open(r.east.config)
	job := r.west.ends(id)
	if job.State != jobmsg.Failed || job.Reason != "ForgottenThere" || job.Charged != 0 {
		t.Errorf("it ended as %+v", job.JobSummary)
	}
	if w := r.west.why(id); w.State != jobmsg.Failed || !strings.Contains(w.Message, "no job 1 of site west") {
		t.Errorf("why: %+v", w)
	}
}
