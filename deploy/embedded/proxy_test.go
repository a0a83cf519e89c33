package embedded

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/wire"
	"github.com/candor-grid/candor/nodeagent/proxy"
)

func asTask[Reply any](u user, value, verb string, what any) (reply Reply, err error) {
	u.Helper()
	payload, err := wire.Marshal(what, wire.Msgpack)
	if err != nil {
		u.Fatal(err)
	}
	data, err := proxy.Request(within(u.T), value, verb, payload)
	if err == nil {
		err = wire.Unmarshal(data, wire.Msgpack, &reply)
	}
	return reply, err
}

// TestATaskAsksItsSite sends requests with the token of an attempt. A task can submit, see and control only jobs of its
// account. The token must be void after the attempt, and no other subject may accept it.
func TestATaskAsksItsSite(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Replicas = 1
	s, err := Start(within(t), c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	task := func(u user, name string) (id messages.JobID, value string) {
		file := filepath.Join(dir, name)
		id = u.submit(name, jobmsg.JobSpec{Budget: messages.Credit, Stages: []jobmsg.Stage{{Name: "main",
			Script: "umask 0; echo \"$CANDOR_PROXY\" > '" + file + ".new' && mv '" + file + ".new' '" + file + "'\nwhile [ ! -e '" + file + ".end' ]; do sleep 0.1; done\n"}}})
		await.Until(t, "the task of "+name+" runs", func() bool {
			text, _ := os.ReadFile(file)
			value = strings.TrimSpace(string(text))
			return value != ""
		})
		return id, value
	}
	alice, bob := connect(t, s, "alice"), connect(t, s, "bob")
	id, value := task(alice, "a")
	others, _ := task(bob, "b")

	jobs, err := asTask[jobmsg.JobsReply](alice, value, messages.VerbJobs, jobmsg.JobsRequest{})
	if err != nil || len(jobs.Jobs) != 1 || jobs.Jobs[0].Job != id {
		t.Errorf("its jobs are %+v, %v", jobs.Jobs, err)
	}
	sub, err := asTask[jobmsg.SubmitReply](alice, value, messages.VerbSubmit, jobmsg.SubmitRequest{Key: "inner",
		Spec: jobmsg.JobSpec{Budget: messages.Credit, AfterOK: []messages.JobID{id}, Stages: []jobmsg.Stage{{Name: "main", Command: []string{"true"}}}}})
	if err != nil || sub.Payer != "alice" {
		t.Fatalf("submitted %+v, %v", sub, err)
	}
	if _, err := asTask[jobmsg.ChangeReply](alice, value, jobmsg.VerbChange, jobmsg.ChangeRequest{Key: "own", Job: id, Name: "renamed"}); err != nil {
		t.Errorf("a task cannot rename its own job: %v", err)
	}
	for verb, request := range map[string]any{
		jobmsg.VerbChange: jobmsg.ChangeRequest{Key: "name", Job: others, Name: "other"}, messages.VerbJob: jobmsg.JobRequest{Job: others}, messages.VerbCancel: jobmsg.CancelRequest{Job: others},
		messages.VerbTasks: jobmsg.TasksRequest{Job: others}, jobmsg.VerbHold: jobmsg.JobRequest{Job: others},
	} {
		if _, err := asTask[messages.Empty](alice, value, verb, request); messages.KindOf(err) != messages.NotFound {
			t.Errorf("%s of another's job: %v", verb, err)
		}
	}
	for _, verb := range []string{agentmsg.VerbProxy, market.VerbApply, market.VerbDrain, messages.VerbExchange, messages.VerbRegister, messages.VerbArchive, messages.VerbReplica, "", "jobs.alice", "*"} {
		if _, err := asTask[messages.Empty](alice, value, verb, messages.Empty{}); messages.KindOf(err) != messages.PermissionDenied {
			t.Errorf("a task may ask for %q: %v", verb, err)
		}
	}
	_, err = bus.Call[agentmsg.ProxyReply](within(t), bob.bus, messages.Subject(bob.site, messages.Auctioneer, agentmsg.VerbProxy, "bob"),
		agentmsg.ProxyRequest{Attempt: messages.Attempt{Task: messages.TaskRef{Job: id}, Number: 1}, Verb: messages.VerbJobs})
	if messages.KindOf(err) != messages.PermissionDenied {
		t.Errorf("a user asked as a node: %v", err)
	}
	cancelled, copied := task(alice, "c")
	if err := os.WriteFile(filepath.Join(dir, "a.end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if job := alice.final(id); job.State != jobmsg.Completed {
		t.Fatalf("%v, %s", job.State, job.Reason)
	}
	if job := alice.final(sub.Job); job.State != jobmsg.Completed {
		t.Errorf("the job that the task submitted is %v, %s", job.State, job.Reason)
	}
	request[jobmsg.CancelReply](alice, messages.Auctioneer, messages.VerbCancel, jobmsg.CancelRequest{Job: cancelled})
	alice.final(cancelled)
	for what, of := range map[string]string{"that has completed": value, "that was cancelled": copied} {
		await.Until(t, "the token ends with the attempt "+what, func() bool { // the task's process may live a moment longer than the job
			_, err := asTask[jobmsg.JobsReply](alice, of, messages.VerbJobs, jobmsg.JobsRequest{})
			return messages.KindOf(err) == messages.Fenced
		})
	}
	operator := connect(t, s, c.Operators[0])
	request[money.AccountReply](operator, messages.Bank, messages.VerbGrant, money.GrantRequest{Key: "own", Account: c.Operators[0], Amount: 10 * messages.Credit})
	_, strong := task(operator, "o")
	if _, err := asTask[jobmsg.JobsReply](operator, strong, messages.VerbJobs, jobmsg.JobsRequest{}); messages.KindOf(err) != messages.PermissionDenied || !strings.Contains(err.Error(), "operates the site") {
		t.Errorf("a task of an operator: %v", err)
	}
	closeSite(t, s)
}
