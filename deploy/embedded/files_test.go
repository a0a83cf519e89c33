package embedded

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner/executor"
)

// eachRunner runs a test on a site that runs tasks itself, and on a site with executors.
func eachRunner(t *testing.T, test func(t *testing.T, s *Site)) {
	for name, o := range map[string]Options{"own": {}, "executor": {Executor: executor.Self()}} {
		t.Run(name, func(t *testing.T) {
			s, err := Start(within(t), small(t.TempDir()), o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { closeSite(t, s) })
			test(t, s)
		})
	}
}

func (u user) file(name string, content []byte) jobmsg.File {
	u.Helper()
	f, err := bus.Digest(name, bytes.NewReader(content))
	if err != nil {
		u.Fatal(err)
	}
	return f
}

// send stores a file in the depot. It reports whether the content was sent, because the depot did not have it yet.
func (u user) send(name string, content []byte) (jobmsg.File, bool) {
	u.Helper()
	f := u.file(name, content)
	sent, err := bus.SendFile(within(u.T), u.bus, messages.Subject(u.site, messages.Depot, jobmsg.VerbPut, u.name), messages.Attempt{}, f, bytes.NewReader(content))
	if err != nil {
		u.Fatal(err)
	}
	return f, sent
}

func (u user) receive(f jobmsg.File) (string, error) { return u.receiveLeft(f, messages.Attempt{}) }

func (u user) receiveLeft(f jobmsg.File, left messages.Attempt) (string, error) {
	u.Helper()
	var content bytes.Buffer
	err := bus.ReceiveFile(within(u.T), u.bus, messages.Subject(u.site, messages.Depot, jobmsg.VerbGet, u.name), left, f, &content)
	return content.String(), err
}

// left returns the output files of the tasks of a job's first stage: for each task, the content of each file by its
// name.
func (u user) left(id messages.JobID) map[uint32]map[string]string {
	u.Helper()
	found := map[uint32]map[string]string{}
	for _, t := range request[jobmsg.OutputsReply](u, messages.Depot, jobmsg.VerbOutputs, jobmsg.OutputsRequest{Job: id}).Tasks {
		files := map[string]string{}
		for _, f := range t.Files {
			content, err := u.receiveLeft(f, t.Attempt)
			if err != nil {
				u.Errorf("%s of task %d: %v", f.Name, t.Attempt.Task.Index, err)
			}
			files[f.Name] = content
		}
		found[t.Attempt.Task.Index] = files
	}
	return found
}

func withFiles(tasks int, script string, outputs []string, inputs ...jobmsg.File) jobmsg.JobSpec {
	return jobmsg.JobSpec{Name: "files", Budget: 4 * messages.Credit, Stages: []jobmsg.Stage{
		{Name: "main", Class: "map", Tasks: tasks, Attempts: 1, Script: script, Inputs: inputs, Outputs: outputs}}}
}

// Every task must get its input files, in their directories and executable where asked. Exactly the files that match
// the output patterns must come back.
func TestFilesTravel(t *testing.T) {
	t.Parallel()
	eachRunner(t, func(t *testing.T, s *Site) {
		u := connect(t, s, "alice")
		words, _ := u.send("data/words", []byte(strings.Repeat("candor\n", 300_000))) // long enough for several pieces
		tool, _ := u.send("count", []byte("#!/bin/sh\nwc -l < data/words\n"))
		tool.Executable = true
		none, _ := u.send("none", nil)
		script := `test -f none && ! test -s none
mkdir out
./count | tr -d ' ' > out/lines.$CANDOR_TASK
echo changed > none
echo secret > private; ln -s /etc/passwd out/lines.link; ln -s lines.$CANDOR_TASK out/lines.again; mkfifo out/lines.pipe`
		id := u.submit("travel", withFiles(3, script, []string{"out/lines.*", "data/*", "none"}, words, tool, none))
		if j := u.final(id); j.State != jobmsg.Completed {
			t.Fatalf("the job ended %v, exit code %d", j.State, j.ExitCode)
		}
		left := u.left(id)
		for i := range uint32(3) {
			name := "out/lines." + string('0'+rune(i))
			files := left[i]
			if len(files) != 3 || files[name] != "300000\n" || files["out/lines.again"] != "300000\n" || files["none"] != "changed\n" {
				t.Errorf("task %d left %q", i, files)
			}
		}
	})
}

// If an account has stored a file, the same content must not be sent again. But a file of one account must not be
// visible to another account.
func TestFilesAreSentOnceAndOwned(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Accounts = append(c.Accounts, Account{Name: "mallory", Grant: 100 * messages.Credit})
	s := start(t, c)
	defer closeSite(t, s)
	u, other := connect(t, s, "alice"), connect(t, s, "mallory")
	content := []byte("for alice")
	f, sent := u.send("a", content)
	if !sent {
		t.Error("the first time nothing was sent")
	}
	if _, again := u.send("b", content); again {
		t.Error("the second time it was sent again")
	}
	if _, err := other.receive(f); messages.KindOf(err) != messages.NotFound {
		t.Errorf("another account's file: %v, want NotFound", err)
	}
	if _, sent := other.send("c", content); !sent {
		t.Error("that another account has a file could be found out")
	}
	for _, verb := range []string{jobmsg.VerbPut, jobmsg.VerbGet, jobmsg.VerbOutputs} {
		_, err := bus.Call[messages.Empty](within(t), other.bus, messages.Subject(u.site, messages.Depot, verb, "alice"), jobmsg.GetRequest{Digest: f.Digest})
		if messages.KindOf(err) != messages.PermissionDenied {
			t.Errorf("%s in another's name: %v, want PermissionDenied", verb, err)
		}
	}
	id := u.submit("own", withFiles(1, "cat a > out", []string{"out"}, f))
	if j := u.final(id); j.State != jobmsg.Completed {
		t.Fatalf("the job ended %v", j.State)
	}
	if left := other.left(id); len(left) != 0 {
		t.Errorf("another account sees %v", left)
	}
	if _, sent := u.send("d", content); sent {
		t.Error("after the job it was sent again")
	}
}

func TestNodesReachTheirTasksOnly(t *testing.T) {
	t.Parallel()
	s := start(t, small(t.TempDir()))
	defer closeSite(t, s)
	u := connect(t, s, "alice")
	f, _ := u.send("a", []byte("input"))
	secret, _ := u.send("b", []byte("of no job"))
	id := u.submit("nodes", withFiles(1, "true", []string{"out"}, f))
	u.final(id)
	stage := 0
	task := request[jobmsg.TasksReply](u, messages.Auctioneer, messages.VerbTasks, jobmsg.TasksRequest{Job: id, Stage: &stage}).Tasks[0]
	attempt := messages.Attempt{Task: task.Task, Number: task.Attempt}
	node := func(name messages.Name) bus.Bus {
		b, err := s.connectAs(identity.Node, name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		return b
	}
	given, other := task.Node, messages.Name("node1")
	if given == other {
		other = "node2"
	}
	take := func(n, as messages.Name, attempt messages.Attempt, f jobmsg.File) error {
		return bus.ReceiveFile(within(t), node(n), messages.Subject(u.site, messages.Depot, jobmsg.VerbTake, as), attempt, f, new(bytes.Buffer))
	}
	later := attempt
	later.Number++
	for what, c := range map[string]struct {
		err  error
		want messages.Kind
	}{
		"another node's task":        {take(other, other, attempt, f), messages.PermissionDenied},
		"in another node's name":     {take(other, given, attempt, f), messages.PermissionDenied},
		"a file of no input":         {take(given, given, attempt, secret), messages.PermissionDenied},
		"an attempt that is none":    {take(given, given, later, f), messages.Fenced},
		"a job that is none":         {take(given, given, messages.Attempt{Task: messages.TaskRef{Job: 999}, Number: 1}, f), messages.NotFound},
		"outputs of another's task":  {deliverAs(t, node(other), u.site, other, attempt, f), messages.PermissionDenied},
		"outputs that did not come":  {deliverAs(t, node(given), u.site, given, attempt, u.file("x", []byte("never sent"))), messages.NotFound},
		"outputs of a user's saying": {deliverAs(t, u.bus, u.site, u.name, attempt, f), messages.PermissionDenied},
	} {
		if c.err == nil || messages.KindOf(c.err) != c.want {
			t.Errorf("%s: %v, want %v", what, c.err, c.want)
		}
	}
	if err := take(given, given, attempt, f); err != nil {
		t.Errorf("the node's own task: %v", err)
	}
}

func deliverAs(t *testing.T, b bus.Bus, site, name messages.Name, attempt messages.Attempt, files ...jobmsg.File) error {
	_, err := bus.Call[messages.Empty](within(t), b, messages.Subject(site, messages.Depot, jobmsg.VerbDeliver, name),
		jobmsg.DeliverRequest{Attempt: attempt, Files: files})
	return err
}

// Tasks whose files cannot be fetched or stored must fail with a reason.
func TestFilesThatCannotTravel(t *testing.T) {
	t.Parallel()
	eachRunner(t, func(t *testing.T, s *Site) {
		u := connect(t, s, "alice")
		missing := u.submit("missing", withFiles(1, "true", nil, u.file("a", []byte("never sent"))))
		large := u.submit("large", withFiles(1, "head -c 67108865 /dev/zero > out", []string{"*"}))
		failed := u.submit("failed", withFiles(1, "echo x > out; exit 3", []string{"out"}))
		nothing := u.submit("nothing", withFiles(1, "true", []string{"out"}))
		for id, want := range map[messages.JobID]jobmsg.State{missing: jobmsg.Failed, large: jobmsg.Failed, failed: jobmsg.Failed, nothing: jobmsg.Completed} {
			if j := u.final(id); j.State != want {
				t.Errorf("job %v ended %v, want %v", id, j.State, want)
			}
			for _, files := range u.left(id) {
				if len(files) > 0 {
					t.Errorf("job %v left %v", id, files)
				}
			}
		}
	})
}

// A damaged copy of an input file must not reach a task; the next task gets a new copy.
func TestDamagedCopyIsNotUsed(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Nodes = NodesAlike(1, Slots{{Class: "map", Slots: 1}, {Class: "reduce", Slots: 1}})
	s := start(t, c)
	defer closeSite(t, s)
	u := connect(t, s, "alice")
	f, _ := u.send("a", []byte("whole"))
	spec := withFiles(1, "grep -q whole a", nil, f)
	if j := u.final(u.submit("whole", spec)); j.State != jobmsg.Completed {
		t.Fatalf("the job ended %v", j.State)
	}
	copies, err := filepath.Glob(filepath.Join(c.State, "nodes", "*", "inputs", f.Digest))
	if err != nil || len(copies) != 1 {
		t.Fatalf("the node has %v, %v", copies, err)
	}
	if err := os.WriteFile(copies[0], []byte("whale"), 0o600); err != nil {
		t.Fatal(err)
	}
	if j := u.final(u.submit("damaged", spec)); j.State != jobmsg.Failed {
		t.Errorf("with a damaged input the job ended %v", j.State)
	}
	if j := u.final(u.submit("mended", spec)); j.State != jobmsg.Completed {
		t.Errorf("after that the job ended %v", j.State)
	}
}
