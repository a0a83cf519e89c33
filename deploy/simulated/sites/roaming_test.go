package sites

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/clearing"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

// TestAJobRunsAtAnotherSite lets alice@west run a job at east. She sends requests only to west.
func TestAJobRunsAtAnotherSite(t *testing.T) {
	r := newRealm(t)
	receipt := r.west.submit("k", "east", roamingSpec(6))
	if receipt.Job != 1 || receipt.Site != "east" || receipt.Market != "main" || receipt.Held != 10*messages.Credit || receipt.Tasks != 6 {
		t.Errorf("answered %+v", receipt)
	}
	if again := r.west.submit("k", "east", roamingSpec(6)); !reflect.DeepEqual(again, receipt) {
		t.Errorf("answered %+v, then %+v", receipt, again)
	}
	local := r.west.submit("l", "", roamingSpec(1))
	if local.Job != 2 {
		t.Errorf("the next job of west is %d", local.Job)
	}
	await.Until(r.east, "tasks run", func() bool { r.east.claim(); return len(r.east.running) == 4 })
	await.Until(r.west, "west knows", func() bool {
		jobs := tell[jobmsg.JobsReply](r.west, "alice", messages.Auctioneer, messages.VerbJobs, jobmsg.JobsRequest{}).Jobs
		return len(jobs) == 2 && jobs[1].State == jobmsg.Running && jobs[1].Running == 4
	})
	job := r.west.job(1)
	if job.Job != 1 || job.Account != "alice" || job.Payer != "alice" || job.Away == nil || job.Away.Site != "east" || job.Away.Trouble != "" || job.Away.Known == 0 || len(job.Stages) != 1 || job.Stages[0].Running != 4 {
		t.Errorf("the job at home: %+v, away %+v", job, job.Away)
	}
	at := tell[jobmsg.JobsReply](r.east, "ops", messages.Auctioneer, messages.VerbJobs, jobmsg.JobsRequest{All: true}).Jobs[0]
	if at.Account != "alice@west" || at.Visit == nil || at.Visit.String() != "west/1" {
		t.Errorf("the job at east: %+v", at)
	}
	if own := tell[jobmsg.JobsReply](r.east, "alice", messages.Auctioneer, messages.VerbJobs, jobmsg.JobsRequest{}).Jobs; len(own) != 0 {
		t.Errorf("alice of east sees %+v", own)
	}
	if w := r.west.why(1); !strings.Contains(w.Message, "at site east") || w.Job != 1 || w.Away == nil {
		t.Errorf("why: %+v", w)
	}
	tasks := tell[jobmsg.TasksReply](r.west, "alice", messages.Auctioneer, messages.VerbTasks, jobmsg.TasksRequest{Job: 1})
	if len(tasks.Tasks) != 4 || tasks.Tasks[0].Task.Job != 1 || tasks.Tasks[0].Node != "n1" || tasks.Account != "alice" {
		t.Fatalf("tasks: %+v", tasks)
	}
	output := tell[agent.LogsReply](r.west, "alice", messages.Auctioneer, clearing.VerbOutput, clearing.OutputRequest{
		Node: "n1", Logs: agent.LogsRequest{Attempt: messages.Attempt{Task: tasks.Tasks[1].Task, Number: 1}}})
	if string(output.Data) != "1.0.1 of alice@west at east\n" || !output.End {
		t.Errorf("output: %q", output.Data)
	}
	r.east.finish()
	r.east.runs(2)
	done := r.west.ends(1)
	if done.State != jobmsg.Completed || done.Charged != 10*messages.Credit || done.Done != 6 || done.Away.Phase != "Ended" {
		t.Errorf("it ended as %+v, %+v", done.JobSummary, done.Away)
	}
	r.west.runs(1)
	r.west.ends(2)
	r.settled()
	if b := r.east.account(money.SiteAccount).Balance; b != 10*messages.Credit {
		t.Errorf("site east has %v", b)
	}
	if a := r.west.account("alice"); a.Balance != realmFunds-20*messages.Credit || a.Reserved != 0 {
		t.Errorf("alice has %+v", a)
	}
	statement := tell[money.StatementReply](r.west, "alice", messages.Bank, messages.VerbStatement, money.StatementRequest{})
	last := statement.Entries[len(statement.Entries)-1]
	for _, e := range statement.Entries {
		if e.Job == 1 {
			last = e
		}
	}
	if last.Change != -10*messages.Credit || !strings.Contains(last.Reason, "site east") || !strings.Contains(last.Reason, "west/1") {
		t.Errorf("the statement says %+v", last)
	}
}

// BenchmarkRoam runs jobs of one task each at another site, and measures how many jobs finish per second. A job counts
// from its submission until the home site knows that it has ended.
func BenchmarkRoam(b *testing.B) {
	r := newRealm(b)
	tell[clearing.PeerReply](r.east, "ops", messages.Bank, clearing.VerbPeer, clearing.PeerRequest{
		Peer: "west", Keys: []string{tell[clearing.PeersReply](r.west, "ops", messages.Bank, clearing.VerbPeers, messages.Empty{}).Key}, Limit: messages.Credit * 1000})
	spec := roamingSpec(1, func(s *jobmsg.JobSpec) { s.Budget = 1 })
	b.ResetTimer()
	var submitted sync.WaitGroup
	places := make(chan struct{}, 16)
	for i := range b.N {
		places <- struct{}{}
		submitted.Go(func() {
			r.west.submit(fmt.Sprint(i), "east", spec)
			<-places
		})
		if i%4 == 3 {
			r.east.claim()
			r.east.finish()
		}
	}
	submitted.Wait()
	await.Until(r.west, "all have ended", func() bool {
		r.east.claim()
		r.east.finish()
		active := tell[jobmsg.JobsReply](r.west, "alice", messages.Auctioneer, messages.VerbJobs, jobmsg.JobsRequest{Active: true, Limit: 1}).Jobs
		return len(active) == 0
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}
