package nodeagent_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent"
	"github.com/candor-grid/candor/nodeagent/runner/store"
)

type fakeDepot struct {
	mu        sync.Mutex
	files     map[string][]byte // by digest
	taken     int               // number of pieces that the agent has taken
	delivered map[messages.TaskRef][]job.File
	refuse    error           // the error that deliver returns
	asked     chan struct{}   // each call of take sends a token here, unless this is nil
	wait      <-chan struct{} // take waits until this channel is closed, unless it is nil
}

func newDepot(t *testing.T, network *bus.Network) *fakeDepot {
	d := &fakeDepot{files: map[string][]byte{}, delivered: map[messages.TaskRef][]job.File{}}
	at := func(verb string, handle bus.Handler) bus.Endpoint {
		return bus.Endpoint{Name: verb, Subject: messages.Subject("home", messages.Depot, verb, "n1"), Handle: handle}
	}
	_, err := network.Connect("$depot").Serve(bus.Service{Name: "candor-depot", Version: "1.0.0", Endpoints: []bus.Endpoint{
		at(job.VerbTake, bus.Handle("take", d.take)),
		at(job.VerbGive, bus.Handle("give", d.give)),
		at(job.VerbDeliver, bus.Handle("deliver", d.deliver)),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *fakeDepot) take(ctx context.Context, _ messages.Name, r job.GetRequest) (job.GetReply, error) {
	if d.asked != nil {
		d.asked <- struct{}{}
	}
	if d.wait != nil {
		<-d.wait
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.taken++
	content, ok := d.files[r.Digest]
	if !ok {
		return job.GetReply{}, messages.Errorf(messages.NotFound, "no such file")
	}
	rest := content[r.Offset:]
	return job.GetReply{Size: int64(len(content)), Data: rest[:min(len(rest), job.PieceSize)]}, nil
}

func (d *fakeDepot) give(_ context.Context, _ messages.Name, r job.PutRequest) (job.PutReply, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(r.Data) == 0 && r.Size > 0 {
		return job.PutReply{}, nil
	}
	d.files[r.Digest] = append(d.files[r.Digest][:r.Offset:r.Offset], r.Data...)
	next := r.Offset + int64(len(r.Data))
	return job.PutReply{Next: next, Done: next == r.Size}, nil
}

func (d *fakeDepot) deliver(_ context.Context, _ messages.Name, r job.DeliverRequest) (messages.Empty, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuse == nil {
		d.delivered[r.Attempt.Task] = r.Files
	}
	return messages.Empty{}, d.refuse
}

func (d *fakeDepot) add(t *testing.T, name, content string) job.File {
	f, err := bus.Digest(name, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	d.files[f.Digest] = []byte(content)
	return f
}

// TestFilesAreFetchedOnceAndDelivered runs two tasks with the same input. Their outputs must be stored before the ends
// are reported.
func TestFilesAreFetchedOnceAndDelivered(t *testing.T) {
	network := bus.NewMemory()
	l, d := newLeader(t, network, time.Hour), newDepot(t, network)
	dir := t.TempDir()
	begin(t, network, func(c *nodeagent.Config) { c.Dir = dir })
	in := d.add(t, "in/data", strings.Repeat("x", job.PieceSize+1))
	job := l.submit(agent.Program{Tasks: 6, Command: []string{"sh", "-c", "wc -c < in/data > out.$CANDOR_TASK; echo >> in/keep"},
		Inputs: []job.File{in, {Name: "same", Size: in.Size, Digest: in.Digest}}, Outputs: []string{"out.*", "s*"}})
	l.until("every task ends", func() bool { return len(l.finished) == 6 })
	if d.taken != 2 {
		t.Errorf("%d pieces were taken, want 2", d.taken)
	}
	for i := range uint32(6) {
		ref := messages.TaskRef{Job: job, Index: i}
		files := d.delivered[ref]
		if f := l.finished[ref]; f.Outcome != agent.Exited || f.ExitCode != 0 {
			t.Errorf("task %v finished as %+v", ref, f)
		}
		if len(files) != 1 || !bytes.Equal(d.files[files[0].Digest], []byte("524289\n")) {
			t.Errorf("task %v left %+v", ref, files)
		}
		kept := store.KeptDir(dir, "ann", l.finished[ref].Attempt)
		if _, err := os.Stat(filepath.Join(kept, "in/data")); !os.IsNotExist(err) {
			t.Errorf("the input of task %v is kept: %v", ref, err)
		}
		if _, err := os.Stat(filepath.Join(kept, "in/keep")); err != nil {
			t.Errorf("what task %v wrote: %v", ref, err)
		}
	}
	if notes, err := os.ReadDir(filepath.Join(dir, "luggage")); err != nil || len(notes) != 0 {
		t.Errorf("notes of tasks that are over are kept: %v, %v", notes, err)
	}
}

// TestFilesThatAreRefused: the outputs of a task are refused, or one of its inputs is missing. The report of the task's
// end must name the cause.
func TestFilesThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		what    string
		refuse  error
		program agent.Program
		outcome agent.Outcome
		code    int
		detail  string
	}{
		{"full", messages.Errorf(messages.Exhausted, "bucket is full"), agent.Program{Command: []string{"true"}, Outputs: []string{"*"}},
			agent.Exited, 1, "ended well, but its outputs were not stored: bucket is full"},
		{"fenced", messages.Errorf(messages.Fenced, "given again"), agent.Program{Command: []string{"true"}, Outputs: []string{"*"}},
			agent.Stopped, 1, "given again"},
		{"many", nil, agent.Program{Command: []string{"sh", "-c", "seq 1001 | xargs touch"}, Outputs: []string{"*"}},
			agent.Exceeded, 1, "limit of 1000 for a task"},
		{"bad end", messages.Errorf(messages.Exhausted, "is not asked"), agent.Program{Command: []string{"false"}, Outputs: []string{"*"}},
			agent.Exited, 1, ""},
		{"missing", nil, agent.Program{Command: []string{"true"}, Inputs: []job.File{{Name: "a", Digest: strings.Repeat("0", 64)}}},
			agent.Unstartable, 0, "input a: no such file"},
		{"escape", nil, agent.Program{Command: []string{"touch", "a"}, Outputs: []string{"../*"}},
			agent.Exited, 1, "must be a relative path"},
	} {
		t.Run(c.what, func(t *testing.T) {
			network := bus.NewMemory()
			l, d := newLeader(t, network, time.Hour), newDepot(t, network)
			d.refuse = c.refuse
			begin(t, network, nil)
			c.program.Tasks = 1
			job := l.submit(c.program)
			l.until("the task ends", func() bool { return len(l.finished) == 1 })
			f := l.finished[messages.TaskRef{Job: job}]
			if f.Outcome != c.outcome || f.ExitCode != c.code {
				t.Errorf("finished as %+v, want %v with code %d", f, c.outcome, c.code)
			}
			if !strings.Contains(f.Detail, c.detail) || c.detail == "" && f.Detail != "" {
				t.Errorf("finished with %q, want %q", f.Detail, c.detail)
			}
		})
	}
}

// TestCloseGivesUpWhatTravels checks that Close does not wait for a transfer.
func TestCloseGivesUpWhatTravels(t *testing.T) {
	network := bus.NewMemory()
	l, d := newLeader(t, network, time.Hour), newDepot(t, network)
	gate := make(chan struct{})
	d.asked, d.wait = make(chan struct{}, 100), gate
	defer close(gate)
	a := begin(t, network, nil)
	job := l.submit(agent.Program{Tasks: 1, Command: []string{"true"}, Inputs: []job.File{d.add(t, "a", "content")}})
	select {
	case <-d.asked:
	case <-time.After(patience):
		t.Fatal("nothing is fetched")
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	l.until("the task ends", func() bool { return len(l.finished) == 1 })
	if f := l.finished[messages.TaskRef{Job: job}]; f.Outcome != agent.Stopped || f.Detail != "stopped before it started" {
		t.Errorf("finished as %+v", f)
	}
}
