package embedded

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// TestResultsAreHandedOverAtTheDeadline submits a job with a late deadline. (A late deadline makes a job cheaper.) By
// default, outputs and logs cannot be read before the deadline. With hand_over: end, they can be read as soon as the
// job has ended.
func TestResultsAreHandedOverAtTheDeadline(t *testing.T) {
	for _, handOver := range []string{"", market.HandOverEnd} {
		t.Run("hand_over: "+handOver, func(t *testing.T) {
			t.Parallel()
			c := small(t.TempDir())
			c.Nodes = NodesAlike(1, Slots{{Class: "due", Slots: 1}})
			c.Replicas = 1
			c.Markets = []market.Market{{Name: "due", Mechanism: market.DeadlineBid, Classes: []messages.Name{"due"}, Slot: unit, HandOver: handOver}}
			s := start(t, c)
			defer closeSite(t, s)
			alice, bob := connect(t, s, "alice"), connect(t, s, "bob")
			for within := 10 * time.Second; ; within *= 2 { // longer each time, until the test can look before the deadline
				deadline := messages.TimeOf(time.Now().Add(within))
				due := func(value messages.Credits, script string) jobmsg.JobSpec {
					return job("due", 1, script, func(j *jobmsg.JobSpec) {
						j.Value, j.Length, j.Deadline = value*messages.Credit, 4*unit, deadline
						j.Stages[0].Outputs = []string{"result"}
					})
				}
				bob.submit(fmt.Sprint("rival ", within), due(12, "sleep 1"))
				id := alice.submit(fmt.Sprint("late ", within), due(60, "echo 42 | tee result; sleep 1"))
				alice.await("the job waits for its price", func() bool { return alice.job(id).State >= jobmsg.Settling })
				settled := alice.job(id).State.Final()
				if now := messages.TimeOf(time.Now()); now.Add(messages.Duration(within/8)) > deadline {
					continue
				}
				if settled {
					t.Fatal("the job was settled at once")
				}
				if kept := handOver == ""; alice.job(id).Kept != kept || strings.Contains(alice.why(id).Message, "can be read then") != kept {
					t.Errorf("job: kept %v; why: %s", alice.job(id).Kept, alice.why(id).Message)
				}
				alice.reads(id, handOver == "")
				if j := alice.final(id); j.State != jobmsg.Completed || j.Kept || messages.TimeOf(time.Now()) < deadline {
					t.Errorf("%+v", j)
				}
				alice.reads(id, false)
				return
			}
		})
	}
}

// This method gets the log and the output of a job with the result 42. If `kept` is true, both must be refused.
func (u user) reads(id messages.JobID, kept bool) {
	u.Helper()
	task := request[jobmsg.TasksReply](u, messages.Auctioneer, messages.VerbTasks, jobmsg.TasksRequest{Job: id}).Tasks[0]
	log, err := bus.Call[agentmsg.LogsReply](within(u.T), u.bus, messages.LogsSubject(u.site, task.Node, u.name),
		agentmsg.LogsRequest{Attempt: messages.Attempt{Task: task.Task, Number: task.Attempt}})
	if refused := err != nil && messages.KindOf(err) == messages.PermissionDenied; refused != kept || !kept && string(log.Data) != "42\n" {
		u.Errorf("kept %v: the log is %q, %v", kept, log.Data, err)
	}
	_, err = bus.Call[jobmsg.OutputsReply](within(u.T), u.bus, messages.Subject(u.site, messages.Depot, jobmsg.VerbOutputs, u.name), jobmsg.OutputsRequest{Job: id})
	if refused := err != nil && messages.KindOf(err) == messages.PermissionDenied; refused != kept {
		u.Errorf("kept %v: the list of outputs: %v", kept, err)
	}
	if !kept {
		if left := u.left(id); left[0]["result"] != "42\n" {
			u.Errorf("outputs %v", left)
		}
	}
}
