package book

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/expect"
	"github.com/candor-grid/candor/messages/job"
)

// attemptsBook returns a book with one job of some tasks. Each of its two nodes has claimed one task.
func attemptsBook(t *testing.T, tasks int) (*Book, func(at messages.Time, c Command) any) {
	t.Helper()
	b := New()
	do := func(at messages.Time, c Command) any {
		t.Helper()
		c.Stamp(at, 0, false)
		result := b.Apply(&c)
		if err, failed := result.(error); failed {
			t.Fatal(err)
		}
		return result
	}
	spec := &job.JobSpec{Market: "main", Budget: 1, Stages: []job.Stage{{Name: "main", Class: "cpu", Tasks: tasks, Attempts: 100, Command: []string{"x"}}}}
	do(1, Command{Submit: &Submit{Account: "alice", Payer: "alice", Key: "k", Spec: spec, Hold: "h", Held: 1}})
	for _, n := range []messages.Name{"n1", "n2"} {
		do(1, Command{Register: &Register{Node: n, Session: 1, Slots: []job.ClassSlots{{Class: "cpu", Slots: 1}}}})
	}
	return b, do
}

// turnOn claims the next task of job 1 on a node. If the argument `f` is not nil, turnOn also ends the task, with the
// report `f`.
func turnOn(do func(messages.Time, Command) any, node messages.Name, seq *uint64, at messages.Time, f *agent.Finished) {
	*seq++
	grants, _ := do(at, Command{Exchange: &Exchange{Node: node, Session: 1, Seq: *seq, Claims: []Claim{{Class: "cpu", Slots: 1, Jobs: []messages.JobID{1}}}}}).([]agent.Grant)
	if f == nil || len(grants) == 0 {
		return
	}
	f.Attempt = grants[0].Attempt
	*seq++
	do(at+1e6, Command{Exchange: &Exchange{Node: node, Session: 1, Seq: *seq, Finished: []agent.Finished{*f}}})
}

func TestEarlierAttemptsAreKept(t *testing.T) {
	b, do := attemptsBook(t, 1)
	var one, two uint64
	turnOn(do, "n1", &one, 10, &agent.Finished{ExitCode: 3, CPU: 2e9, MaxRSS: 5 << 20})
	turnOn(do, "n2", &two, 2e6, nil)
	do(5e6, Command{Lost: &Lost{Node: "n2", Session: 1}})
	turnOn(do, "n1", &one, 6e6, &agent.Finished{Outcome: agent.TimedOut, ExitCode: 143, Detail: "ended after 1s by its time limit of 1s"})
	var image bytes.Buffer
	if _, err := b.Capture().WriteTo(&image); err != nil {
		t.Fatal(err)
	}
	again := New()
	if err := again.Restore(&image); err != nil {
		t.Fatal(err)
	}
	for _, book := range []*Book{b, again} {
		j := book.Job(1)
		var got []string
		for _, k := range j.Kept.Of(0) {
			got = append(got, fmt.Sprint(k.Attempt, " ", book.Nodes()[k.Node].Name, " ", k.Reason, " ", k.Exit))
		}
		if want := "[1 n1 ExitCode 3 2 n2 NodeLost 0 3 n1 TimeLimit 143]"; fmt.Sprint(got) != want || j.Omitted != 0 {
			t.Errorf("kept %v, want %s", got, want)
		}
		if want := "task main.0 ended after 1s by its time limit of 1s on n1; tried 3 times (2 count as failures)"; j.Cause != want {
			t.Errorf("ended by %q, want %q", j.Cause, want)
		}
	}
	if b.Hash() != again.Hash() {
		t.Error("another book after its image was read")
	}
}

func TestCauses(t *testing.T) {
	b, do := attemptsBook(t, 1)
	spec := &job.JobSpec{Market: "main", Budget: 1, AfterOK: []messages.JobID{1}, Stages: []job.Stage{{Name: "main", Class: "cpu", Tasks: 1, Command: []string{"x"}}}}
	do(2, Command{Submit: &Submit{Account: "alice", Payer: "alice", Key: "later", Spec: spec, Hold: "i", Held: 1}})
	var seq uint64
	turnOn(do, "n1", &seq, 3, nil)
	do(4, Command{Cancel: &Cancel{Job: 1, By: "root"}})
	if got := b.Job(1).Cause; got != "cancelled by root, an operator" {
		t.Errorf("got %q", got)
	}
	if got := b.Job(2).Cause; got != "job 1, which was to complete first, is Cancelled" {
		t.Errorf("got %q", got)
	}
	seq++
	do(5, Command{Exchange: &Exchange{Node: "n1", Session: 1, Seq: seq, Finished: []agent.Finished{{Outcome: agent.Stopped, Attempt: messages.Attempt{Task: messages.TaskRef{Job: 1}, Number: 1}}}}})
	if j := b.Job(1); j.Stages[0].Tasks[0].Reason != job.EndCancelled || len(j.Kept) != 0 {
		t.Errorf("%+v", j.Stages[0].Tasks[0])
	}
}

// A job that waits for the start of job X begins when a task of X is claimed. A job that waits for the failure of X
// begins when X has failed, and ends if X completes.
func TestAJobWaitsForAStartOrAFailure(t *testing.T) {
	b, do := attemptsBook(t, 1)
	enter := func(key string, wait func(*job.JobSpec)) {
		spec := &job.JobSpec{Market: "main", Budget: 1, Stages: []job.Stage{{Name: "main", Class: "cpu", Tasks: 1, Command: []string{"x"}}}}
		wait(spec)
		do(2, Command{Submit: &Submit{Account: "alice", Payer: "alice", Key: key, Spec: spec, Hold: key, Held: 1}})
	}
	one := []messages.JobID{1}
	enter("start", func(s *job.JobSpec) { s.AfterStart = one })                    // job 2
	enter("failed", func(s *job.JobSpec) { s.AfterFailed = one })                  // job 3
	enter("both", func(s *job.JobSpec) { s.AfterStart, s.AfterFailed = one, one }) // job 4
	enter("ok", func(s *job.JobSpec) { s.AfterOK = one })                          // job 5
	blocked := func(when string, want ...int) {
		t.Helper()
		var image bytes.Buffer
		if _, err := b.Capture().WriteTo(&image); err != nil {
			t.Fatal(err)
		}
		again := New()
		if err := again.Restore(&image); err != nil {
			t.Fatal(err)
		}
		for i, n := range want {
			for _, book := range []*Book{b, again} {
				if j := book.Job(messages.JobID(i + 2)); j.Blocked != n {
					t.Errorf("%s: job %d counts %d, want %d", when, j.ID, j.Blocked, n)
				}
			}
		}
		if b.Hash() != again.Hash() {
			t.Errorf("%s: another book after its image was read", when)
		}
	}
	blocked("before the start", 1, 1, 1, 1)
	var seq uint64
	turnOn(do, "n1", &seq, 3, nil)
	blocked("running", 0, 1, 1, 1)
	ended := agent.Finished{Attempt: messages.Attempt{Task: messages.TaskRef{Job: 1}, Number: 1}}
	do(4, Command{Exchange: &Exchange{Node: "n1", Session: 1, Seq: seq + 1, Finished: []agent.Finished{ended}}})
	blocked("completed", 0, 0, 0, 0)
	for id, cause := range map[messages.JobID]string{2: "", 3: "job 1, which was to fail first, is Completed", 4: "job 1, which was to fail first, is Completed", 5: ""} {
		if j := b.Job(id); j.Cause != cause {
			t.Errorf("job %d ended by %q, want %q", id, j.Cause, cause)
		}
	}
	spec := job.JobSpec{AfterFailed: one}
	if err := b.Dependable(&spec); messages.KindOf(err) != messages.Ended {
		t.Errorf("a job that waits for the failure of a completed one: %v", err)
	}
	enter("unstarted", func(s *job.JobSpec) { s.Hold = true })                      // job 6
	enter("failure", func(s *job.JobSpec) { s.AfterFailed = []messages.JobID{6} })  // job 7
	enter("cancelled", func(s *job.JobSpec) { s.AfterStart = []messages.JobID{6} }) // job 8
	do(5, Command{Cancel: &Cancel{Job: 6, By: "alice"}})
	fails, starts := b.Job(7), b.Job(8)
	expect.Same(t, "Blocked", fails.Blocked, 0, "Active", fails.Active(), true, "Blocked", starts.Blocked, 0, "Active", starts.Active(), true)
}

func TestEvictedAttempt(t *testing.T) {
	b, do := attemptsBook(t, 1)
	var seq uint64
	turnOn(do, "n1", &seq, 3, nil)
	do(4, Command{Drain: &Drain{Node: "n1", Until: 4}})
	do(5, Command{Drain: &Drain{Node: "n1", Until: 4, Evict: true}})
	seq++
	do(6, Command{Exchange: &Exchange{Node: "n1", Session: 1, Seq: seq, Finished: []agent.Finished{{Outcome: agent.Stopped, Attempt: messages.Attempt{Task: messages.TaskRef{Job: 1}, Number: 1}}}}})
	if j := b.Job(1); len(j.Kept) != 1 || j.Kept[0].Reason != job.EndEvicted {
		t.Errorf("%+v", j.Kept)
	}
}

// The memory limit killed a process of a task, but the task still succeeds. The job must report the killed process.
func TestTasksThatLostAProcessSaySo(t *testing.T) {
	b, do := attemptsBook(t, 3)
	var seq uint64
	turnOn(do, "n1", &seq, 10, &agent.Finished{})
	turnOn(do, "n1", &seq, 2e6, &agent.Finished{MemoryKilled: true, Detail: "lost a process to its memory limit of 32 MiB; the task ended with exit code 0"})
	turnOn(do, "n1", &seq, 4e6, &agent.Finished{MemoryKilled: true})
	j := b.Job(1)
	name := func(uint32) messages.Name { return "n1" }
	want := "task main.1 lost a process to its memory limit of 32 MiB on n1; the task ended with exit code 0; so did 1 other task"
	if got := j.MemoryKilled(name); got != want || j.Outcome != job.Completed || j.Setbacks(math.MaxInt64, name) != "" {
		t.Errorf("%v: %q, want %q; setbacks %q", j.Outcome, got, want, j.Setbacks(math.MaxInt64, name))
	}
}

// TestAnUnknownUserIsSaidOnce starts a task on nodes that do not know its user. The sentence about the job's state must
// say this once, and count the attempts.
func TestAnUnknownUserIsSaidOnce(t *testing.T) {
	b, do := attemptsBook(t, 1)
	var one, two uint64
	const why = `user "alice", who would run the task, is not known on this node`
	for i, seq := range []*uint64{&one, &two} {
		turnOn(do, []messages.Name{"n1", "n2"}[i], seq, messages.Time(10+2e6*i), &agent.Finished{Outcome: agent.Unstartable, Detail: why})
	}
	said := b.Job(1).Setbacks(math.MaxInt64, func(node uint32) messages.Name { return []messages.Name{"n1", "n2"}[node] })
	if want := "2 attempts came to nothing: attempt 2 of task main.0 could not be started on n2: " + why; said != want {
		t.Errorf("%q, want %q", said, want)
	}
}

// Tasks of a job fail many times, each time with another text. Only some of the failed attempts are kept. The job must
// count the attempts that are not kept.
func TestKeptAttemptsAreBounded(t *testing.T) {
	b, do := attemptsBook(t, 3)
	var seq uint64
	const attempts = 90
	for i := range attempts {
		turnOn(do, "n1", &seq, messages.Time(i+1)*10e6, &agent.Finished{ExitCode: 1, Detail: strings.Repeat(fmt.Sprint(i%10), MaxDetail-i%7)})
	}
	j := b.Job(1)
	bytes := map[string]int{}
	for _, k := range j.Kept {
		bytes[k.Detail] = len(k.Detail)
	}
	total := 0
	for _, n := range bytes {
		total += n
	}
	if len(j.Kept) != MaxKept || total > maxDetails {
		t.Errorf("keeps %d attempts with %d bytes", len(j.Kept), total)
	}
	if want := attempts - MaxKept - 1; !j.Active() || j.Omitted != want { // the latest attempt is stored in the task itself
		t.Errorf("%d attempts are not kept, want %d", j.Omitted, want)
	}
}

// TestMillionTasks prints the memory that a million finished tasks take.
func TestMillionTasks(t *testing.T) {
	if size := unsafe.Sizeof(Task{}); size != 48 {
		t.Errorf("a task has %d bytes, and its comment says 48", size)
	}
	const tasks = 1_000_000
	b, do := attemptsBook(t, tasks)
	do(1, Command{Register: &Register{Node: "big", Session: 1, Slots: []job.ClassSlots{{Class: "cpu", Slots: 1 << 16}}}})
	before, seq := memory(), uint64(0)
	for done := 0; done < tasks; {
		seq++
		grants := do(messages.Time(seq), Command{Exchange: &Exchange{Node: "big", Session: 1, Seq: seq,
			Claims: []Claim{{Class: "cpu", Slots: 1 << 15, Jobs: []messages.JobID{1}}}}}).([]agent.Grant)
		ends := make([]agent.Finished, len(grants))
		for i, g := range grants {
			ends[i] = agent.Finished{Attempt: g.Attempt, CPU: 1e9, MaxRSS: 100 << 20}
		}
		seq++
		do(messages.Time(seq), Command{Exchange: &Exchange{Node: "big", Session: 1, Seq: seq, Finished: ends}})
		done += len(grants)
	}
	if j := b.Job(1); j.Outcome != job.Completed {
		t.Fatalf("%v", j.State)
	}
	t.Logf("%d bytes a task in memory, %d in an array of tasks", (memory()-before)/tasks, unsafe.Sizeof(Task{}))
	runtime.KeepAlive(b)
}

func memory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
