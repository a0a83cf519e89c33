package auctioneer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

// A search lists each attempt with its state and reason, uses its filters, and continues where it stopped.
func TestTaskSearch(t *testing.T) {
	b, seq := book.New(), map[messages.Name]uint64{}
	do := func(at messages.Time, c book.Command) any {
		t.Helper()
		c.Stamp(at, 0, false)
		result := b.Apply(&c)
		if err, failed := result.(error); failed {
			t.Fatal(err)
		}
		return result
	}
	exchange := func(at messages.Time, node messages.Name, slots int, f ...agent.Finished) []agent.Grant {
		seq[node]++
		return do(at, book.Command{Exchange: &book.Exchange{Node: node, Session: 1, Seq: seq[node], Finished: f,
			Claims: []book.Claim{{Class: "cpu", Slots: slots, Jobs: []messages.JobID{1}}}}}).([]agent.Grant)
	}
	spec := &job.JobSpec{Market: "main", Budget: 1, Stages: []job.Stage{{Name: "main", Class: "cpu", Tasks: 6, Attempts: 2, Command: []string{"x"},
		Array: job.Array{{First: 10, Last: 15, Step: 1}}}}}
	do(1, book.Command{Submit: &book.Submit{Account: "alice", Payer: "alice", Key: "k", Spec: spec, Hold: "h", Held: 1}})
	for _, n := range []messages.Name{"n1", "n2"} {
		do(1, book.Command{Register: &book.Register{Node: n, Session: 1, Slots: []job.ClassSlots{{Class: "cpu", Slots: 2}}}})
	}
	g := exchange(2, "n1", 2)
	exchange(2, "n2", 2)
	exchange(3e6, "n1", 2, agent.Finished{Attempt: g[0].Attempt, CPU: 2e9, MaxRSS: 8 << 20},
		agent.Finished{Attempt: g[1].Attempt, ExitCode: 9, Detail: "wrote nothing"})
	do(4e6, book.Command{Lost: &book.Lost{Node: "n2", Session: 1}})
	list := func(r job.TasksRequest) (job.TasksReply, string) {
		var reply job.TasksReply
		s := taskSearch{TasksRequest: &r, book: b, job: b.Job(1), most: max(r.Limit, 1), now: 5e6, reply: &reply}
		s.stage(0)
		var out []string
		for _, l := range reply.Tasks {
			exit := "-"
			if l.ExitCode != nil {
				exit = fmt.Sprint(*l.ExitCode)
			}
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s.%d[%d]/%d %s %s %s %s", l.Stage, l.Index, l.Array, l.Attempt, l.Node, l.State, exit, l.Reason)))
		}
		return reply, strings.Join(out, "; ")
	}
	const (
		done    = "main.0[10]/1 n1 Done 0"
		earlier = "main.1[11]/1 n1 Failed 9 ExitCode"
		again   = "main.1[11]/2 n1 Running -"
		fresh   = "main.4[14]/1 n1 Running -"
		lost2   = "main.2[12]/1 n2 Pending - NodeLost"
		lost3   = "main.3[13]/1 n2 Pending - NodeLost"
	)
	for _, c := range []struct {
		ask  job.TasksRequest
		want []string
		more bool
	}{
		{job.TasksRequest{Limit: 100}, []string{done, again, lost2, lost3, fresh}, false},
		{job.TasksRequest{Limit: 100, Attempts: true}, []string{done, earlier, again, lost2, lost3, fresh}, false},
		{job.TasksRequest{Limit: 100, Attempts: true, States: []string{"Failed"}}, []string{earlier}, false},
		{job.TasksRequest{Limit: 100, Node: "n2"}, []string{lost2, lost3}, false},
		{job.TasksRequest{Limit: 2}, []string{done, again}, true},
		{job.TasksRequest{Limit: 2, From: 2, Until: 4}, []string{lost2, lost3}, false},
		{job.TasksRequest{Limit: 2, From: 9}, nil, false},
	} {
		reply, got := list(c.ask)
		if want := strings.Join(c.want, "; "); got != want || reply.More != c.more || c.more && reply.Next != c.ask.From+2 {
			t.Errorf("%+v:\n%s, more %v from %d; want\n%s", c.ask, got, reply.More, reply.Next, want)
		}
	}
	all, _ := list(job.TasksRequest{Limit: 100, Attempts: true})
	if got := all.Tasks[1].Message; got != "ended with exit code 9 on n1: it wrote nothing" {
		t.Errorf("says %q", got)
	}
	if d := all.Tasks[0]; d.CPU != 2e9 || d.MaxRSS != 8<<20 || d.Ran <= 0 {
		t.Errorf("%+v", d)
	}
}
