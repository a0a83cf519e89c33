package accounts_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// usedJobs returns five jobs of two users: one ended before the others, and one has not ended.
func usedJobs() []jobmsg.JobSummary {
	job := func(id messages.JobID, account, payer messages.Name, state jobmsg.State, charged messages.Credits, used ...jobmsg.ClassUse) jobmsg.JobSummary {
		return jobmsg.JobSummary{Job: id, Account: account, Payer: payer, Market: "main", State: state, Charged: charged, Submitted: clienttest.At(-200), Ended: clienttest.At(float64(id) - 100), Used: used}
	}
	return []jobmsg.JobSummary{
		job(5, "alice", "climate", jobmsg.Completed, 9*messages.Credit, jobmsg.ClassUse{Class: "cpu", SlotHours: 2, CPUHours: 4, MemoryHours: 8.5}, jobmsg.ClassUse{Class: "gpu", SlotHours: 1, GPUHours: 3}),
		job(4, "bob", "bob", jobmsg.Failed, messages.Credit, jobmsg.ClassUse{Class: "cpu", SlotHours: 0.5, CPUHours: 1}),
		{Job: 3, Account: "bob", Payer: "bob", Market: "main", State: jobmsg.Running, Submitted: clienttest.At(-200)},
		job(2, "alice", "alice", jobmsg.Cancelled, 0),
		job(1, "alice", "alice", jobmsg.Completed, 7*messages.Credit, jobmsg.ClassUse{Class: "cpu", SlotHours: 7}), // ended before the other jobs
	}
}

// usedSite returns a site that lists jobs, two on each page. Only an operator gets the jobs of other users.
func usedSite(t *testing.T) *clienttest.Site {
	s, all := newSite(t), usedJobs()
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJobs, func(r jobmsg.JobsRequest) (reply jobmsg.JobsReply, err error) {
		if r.All && s.Env["CANDOR_ACCOUNT"] != "operator" {
			return reply, messages.Errorf(messages.PermissionDenied, "only operators may list the jobs of other accounts")
		}
		from, _ := strconv.Atoi(r.After) // "" is the beginning
		to := min(from+2, len(all))
		if reply.Jobs = all[from:to]; to < len(all) {
			reply.More, reply.Next = true, strconv.Itoa(to)
		}
		return reply, nil
	})
	return s
}

// A job with slots of two classes must count once. Its charge must be divided between the classes.
func TestUsageSumsUpTheJobsThatEnded(t *testing.T) {
	s := usedSite(t)
	s.Env["CANDOR_ACCOUNT"] = "operator"
	from := clienttest.At(-98).Std().UTC().Format("2006-01-02T15:04:05Z")
	s.Run("usage", "--from", from, "--by", "project,user", "--csv").Expect(t, 0,
		"project,user,jobs,completed,failed,cancelled,discarded,slot_hours,cpu_hours,gpu_hours,memory_gib_hours,credits\n"+
			"climate,alice,1,1,0,0,0,3.000000,4.000000,3.000000,8.500000,9\n,bob,1,0,1,0,0,0.500000,1.000000,0.000000,0.000000,1\n,alice,1,0,0,1,0,0.000000,0.000000,0.000000,0.000000,0\n", "")
	s.Run("usage", "--from", from, "--by", "class", "--csv").Expect(t, 0,
		"cpu,2,1,1,0,0,2.500000,5.000000,0.000000,8.500000,7\ngpu,1,1,0,0,0,1.000000,0.000000,3.000000,0.000000,3\n,1,0,0,1,0,0.000000,0.000000,0.000000,0.000000,0\n", "")
	s.Run("usage", "--from", from, "--json").Expect(t, 0, `"all":{"jobs":3,"completed":1,"failed":1,"cancelled":1,"discarded":0,"slot_hours":3.5,"cpu_hours":5,"gpu_hours":3,"memory_gib_hours":8.5,"charged":10}`, "")
	s.Run("usage", "--from", from).Expect(t, 0, "Usage of all accounts", "")
}

func TestUsageOfOneself(t *testing.T) {
	s := usedSite(t)
	s.Run("usage", "--from", "2020-01-01").Expect(t, 0, "Usage of account alice", "")
	for _, bad := range [][]string{{"--by", "colour"}, {"--by", "label="}, {"--from", "1h", "--to", "2h"}, {"--csv", "--json"}} {
		if r := s.Run(append([]string{"usage"}, bad...)...); r.Code != cli.CodeUsage || r.Err == "" {
			t.Errorf("%q: %+v", bad, r)
		}
	}
}

// TestUsageForTheConsole writes jobs as JSON, and their sums as candor usage prints them. A test of the console
// compares its own sums with them.
func TestUsageForTheConsole(t *testing.T) {
	s := usedSite(t)
	s.Env["CANDOR_ACCOUNT"] = "operator"
	text, err := json.MarshalIndent(usedJobs(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	clienttest.Golden(t, "usage.json", string(text)+"\n")
	clienttest.Golden(t, "usage.csv", s.Run("usage", "--from", "2020-01-01", "--by", "project,user,class", "--csv").Out)
}
