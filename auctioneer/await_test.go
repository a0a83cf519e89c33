package auctioneer

import (
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

func (f *fixture) waiting() int {
	f.endings.mu.Lock()
	defer f.endings.mu.Unlock()
	return f.endings.all
}

// ask sends in the background a request that waits for the end of a job. The channel gets the answer.
func (f *fixture) ask(job messages.JobID) <-chan jobmsg.JobDetail {
	answered := make(chan jobmsg.JobDetail, 1)
	go func() {
		d, err := call[jobmsg.JobDetail](f, "alice", messages.VerbJob, jobmsg.JobRequest{Job: job, Wait: jobmsg.MostWait})
		if err != nil {
			f.t.Error(err)
		}
		answered <- d
	}()
	await.Until(f.t, "the request waits", func() bool { return f.waiting() == 1 })
	return answered
}

// A request is answered when the job ends, also after a change of the leader. After the answers, the leader must count
// no request as waiting.
func TestQueryWaitsForTheEnd(t *testing.T) {
	f := start(t)
	f.register("n1", 2)
	id := f.submit("alice", "k1", oneStage(2)).Job
	answered := f.ask(id)
	ended, leave := f.endings.enter("bob", id)
	g := f.claim("n1", 1, id, 2).Grants
	f.finish("n1", 2, 0, g[0])
	select {
	case <-ended:
		t.Error("half of the job is no end")
	case d := <-answered:
		t.Errorf("answered %v", d.State)
	default:
	}
	f.log.Depose()
	await.Until(t, "the request waits no longer", func() bool { return f.waiting() == 1 })
	f.log.Elect()
	await.Until(t, "the request waits at the next leader", func() bool { return f.waiting() == 2 })
	f.finish("n1", 3, 0, g[1])
	if d := <-answered; d.State != jobmsg.Completed {
		t.Errorf("answered %v", d.State)
	}
	<-ended
	leave()
	if n := f.waiting(); n != 0 || len(f.endings.jobs) != 0 || len(f.endings.of) != 0 {
		t.Errorf("%d requests wait, for %v, of %v", n, f.endings.jobs, f.endings.of)
	}
	if d := must[jobmsg.JobDetail](f, "alice", messages.VerbJob, jobmsg.JobRequest{Job: id, Wait: jobmsg.MostWait}); d.State != jobmsg.Completed {
		t.Errorf("answered %v", d.State)
	}
}

// Requests above the limits, requests about another account's job, and invalid requests are answered at once.
func TestWaitsAreBounded(t *testing.T) {
	f := start(t)
	id := f.submit("alice", "k1", oneStage(1)).Job
	_, err := call[jobmsg.JobDetail](f, "bob", messages.VerbJob, jobmsg.JobRequest{Job: id, Wait: 100 * jobmsg.MostWait})
	wantKind(t, err, messages.NotFound)
	_, err = call[jobmsg.JobDetail](f, "alice", messages.VerbJob, jobmsg.JobRequest{Job: id, Wait: -1})
	wantKind(t, err, messages.Invalid)
	for range mostWaitsOf {
		if ended, _ := f.endings.enter("alice", id); ended == nil {
			t.Fatal("refused too early")
		}
	}
	if d := must[jobmsg.JobDetail](f, "alice", messages.VerbJob, jobmsg.JobRequest{Job: id, Wait: jobmsg.MostWait}); d.State != jobmsg.Waiting {
		t.Errorf("answered %v", d.State)
	}
	if ended, _ := f.endings.enter("operator", id); ended == nil {
		t.Error("alice's requests keep others from waiting")
	}
	for i := range mostWaits {
		f.endings.enter(messages.Name(rune('a'+i%26))+"x", id)
	}
	if ended, _ := f.endings.enter("carol", id); ended != nil || f.waiting() > mostWaits {
		t.Errorf("%d requests wait", f.waiting())
	}
}
