package depot

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/wire"
)

// roaming returns a site and its peer. The peer runs a job of alice. The job's number is 17 at its home site, and 7 at
// the peer. The job has one input, and alice has sent this input to her own site.
func roaming(t *testing.T) (west, east *site, input jobmsg.File, mine messages.Attempt) {
	t.Helper()
	net := bus.NewMemory()
	west, east = siteOn(t, net, "west", Config{}), siteOn(t, net, "east", Config{})
	input, _, err := west.send(jobmsg.VerbPut, "alice", messages.Attempt{}, strings.Repeat("in", jobmsg.PieceSize))
	if err != nil {
		t.Fatal(err)
	}
	spec := jobmsg.JobSpec{Stages: []jobmsg.Stage{{Name: "main", Inputs: []jobmsg.File{input}}}}
	west.job = jobmsg.JobDetail{JobSummary: jobmsg.JobSummary{Job: 17, Account: "alice", Away: &jobmsg.Away{Site: "east"}}, Spec: spec}
	east.job = jobmsg.JobDetail{JobSummary: jobmsg.JobSummary{Job: 7, Account: "alice@west", Visit: &jobmsg.Visit{Home: "west", Job: 17}}, Spec: spec}
	return west, east, input, messages.Attempt{Task: east.at.Task, Number: 2}
}

// The inputs of a job must reach the site that runs it and be stored there, and the outputs of its tasks must reach the
// job's owner.
func TestFilesTravelBetweenSites(t *testing.T) {
	west, east, input, mine := roaming(t)
	want, err := west.receive(jobmsg.VerbGet, "alice", messages.Attempt{}, input)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := east.receive(jobmsg.VerbTake, "node1", mine, input); got != want || err != nil {
		t.Fatalf("the node has %d bytes of %d, %v", len(got), len(want), err)
	}
	if kept, _, err := east.bucket(VisitorsOf("west")).Get(east.within(), input.Digest); err != nil || len(kept) == 0 {
		t.Errorf("the input is not kept: %q, %v", kept, err)
	}
	output, _, err := east.send(jobmsg.VerbGive, "node1", mine, strings.Repeat("out", jobmsg.PieceSize))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ask[messages.Empty](east, jobmsg.VerbDeliver, "node1", jobmsg.DeliverRequest{Attempt: mine, Files: []jobmsg.File{output}}); err != nil {
		t.Fatal(err)
	}
	reply, err := ask[jobmsg.OutputsReply](west, jobmsg.VerbOutputs, "alice", jobmsg.OutputsRequest{Job: 17, Limit: 1})
	if err != nil || len(reply.Tasks) != 1 || reply.Tasks[0].Attempt.Task.Job != 17 || !slices.Equal(reply.Tasks[0].Files, []jobmsg.File{output}) {
		t.Fatalf("alice finds %+v, %v", reply, err)
	}
	left := reply.Tasks[0].Attempt
	fetch := func(as messages.Name, attempt messages.Attempt, f jobmsg.File) (string, error) {
		var b bytes.Buffer
		err := bus.ReceiveFileOf(west.within(), west.net.Connect(as), messages.Subject("west", messages.Depot, jobmsg.VerbGet, as), as, attempt, f, &b)
		return b.String(), err
	}
	if got, err := fetch("alice", left, output); len(got) != 3*jobmsg.PieceSize || err != nil {
		t.Errorf("alice gets %d bytes, %v", len(got), err)
	}
	_, err = fetch("bob", left, output)
	wantKind(t, "the file of another's job", err, messages.NotFound)
	_, err = fetch("alice", left, input)
	wantKind(t, "what the task has not left", err, messages.NotFound)
	_, err = ask[jobmsg.OutputsReply](west, jobmsg.VerbOutputs, "bob", jobmsg.OutputsRequest{Job: 17})
	wantKind(t, "the list of another's job", err, messages.NotFound)
}

// A peer must be able to read the inputs of jobs that it runs, and the files of its own jobs here. It must not be able
// to read anything else.
func TestAPeerReadsItsJobsFilesAlone(t *testing.T) {
	west, east, input, mine := roaming(t)
	secret, _, err := west.send(jobmsg.VerbPut, "alice", messages.Attempt{}, "secret")
	if err != nil {
		t.Fatal(err)
	}
	of := func(job messages.JobID) messages.Attempt { return messages.Attempt{Task: messages.TaskRef{Job: job}} }
	for what, tried := range map[string]struct {
		as   messages.Name
		file jobmsg.File
	}{"no input of the job": {"$east", secret}, "a job at another site": {"$north", input}, "a user": {"alice", input}, "a service": {"$bank", input}} {
		_, err := west.receive(jobmsg.VerbPeerTake, tried.as, of(17), tried.file)
		wantKind(t, what, err, messages.PermissionDenied)
	}
	if _, err := west.receive(jobmsg.VerbPeerTake, "$east", of(17), input); err != nil {
		t.Errorf("an input of a job there: %v", err)
	}
	output, _, err := east.send(jobmsg.VerbGive, "node1", mine, "output")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ask[messages.Empty](east, jobmsg.VerbDeliver, "node1", jobmsg.DeliverRequest{Attempt: mine, Files: []jobmsg.File{output}}); err != nil {
		t.Fatal(err)
	}
	east.job.Kept = true
	_, err = east.receive(jobmsg.VerbPeerGet, "$west", of(17), output)
	wantKind(t, "a file that the market keeps", err, messages.KindOf(jobmsg.ErrKept(17, 0)))
	east.job.Kept = false
	_, err = east.receive(jobmsg.VerbPeerGet, "$north", of(17), output)
	wantKind(t, "a file of another peer's job", err, messages.NotFound)
	_, err = east.receive(jobmsg.VerbPeerGet, "$west", of(7), output)
	wantKind(t, "a file by the number here", err, messages.NotFound)
	if got, err := east.receive(jobmsg.VerbPeerGet, "$west", of(17), output); got != "output" || err != nil {
		t.Errorf("the home site gets %q, %v", got, err)
	}
}

// TestListsOfAPeerAreHeldToTheQuestion sends lists with bad names, impossible sizes and tasks that were not in the
// request. None may reach a user: a bad name could lead out of a directory, or move the cursor of a terminal.
func TestListsOfAPeerAreHeldToTheQuestion(t *testing.T) {
	digest := strings.Repeat("0", 64)
	list := func(job messages.JobID, index, next uint32, f jobmsg.File) jobmsg.OutputsReply {
		return jobmsg.OutputsReply{Next: next, Tasks: []jobmsg.TaskOutputs{{Attempt: messages.Attempt{Task: messages.TaskRef{Job: job, Index: index}}, Files: []jobmsg.File{f}}}}
	}
	good := jobmsg.File{Name: "a", Size: 1, Digest: digest}
	for what, said := range map[string]jobmsg.OutputsReply{
		"a path out":      list(17, 0, 1, jobmsg.File{Name: "../a", Digest: digest}),
		"a large file":    list(17, 0, 1, jobmsg.File{Name: "a", Size: jobmsg.MaxFile + 1, Digest: digest}),
		"a negative size": list(17, 0, 1, jobmsg.File{Name: "a", Size: -1, Digest: digest}),
		"no digest":       list(17, 0, 1, jobmsg.File{Name: "a"}),
		"another job":     list(18, 0, 1, good),
		"another task":    list(17, 5, 1, good),
		"no end":          list(17, 0, 0, good),
		"more than asked": list(17, 0, 1001, good),
		"the same twice":  {Next: 1, Tasks: append(list(17, 0, 1, good).Tasks, list(17, 0, 1, good).Tasks...)},
		"no name that is": list(17, 0, 1, jobmsg.File{Name: "", Size: 1, Digest: digest}),
	} {
		if err := credible(&jobmsg.OutputsRequest{Job: 17, Limit: 1}, &said); err == nil {
			t.Errorf("%s is passed on", what)
		}
	}
	said := list(17, 0, 1, good)
	if err := credible(&jobmsg.OutputsRequest{Job: 17, Limit: 1}, &said); err != nil {
		t.Error(err)
	}
}

// A peer does not answer. Only a few requests of the depot may wait for it at the same time, so that the depot still
// serves the site's own users.
func TestASilentPeerKeepsNobodyWaiting(t *testing.T) {
	west := newSite(t, Config{})
	west.job = jobmsg.JobDetail{JobSummary: jobmsg.JobSummary{Job: 17, Account: "alice", Away: &jobmsg.Away{Site: "east"}}}
	asked, answer := make(chan struct{}, 1), make(chan struct{})
	_, err := west.net.Connect("$depot").Serve(bus.Service{Name: "silent", Version: "1.0.0", Concurrency: 100, Endpoints: []bus.Endpoint{{
		Name: jobmsg.VerbPeerOutputs, Subject: messages.Subject("east", messages.Depot, jobmsg.VerbPeerOutputs, "*"),
		Handle: bus.Handle("silent", func(context.Context, messages.Name, jobmsg.OutputsRequest) (jobmsg.OutputsReply, error) {
			asked <- struct{}{}
			<-answer
			return jobmsg.OutputsReply{Next: 1}, nil
		})}}})
	if err != nil {
		t.Fatal(err)
	}
	payload, err := wire.Marshal(jobmsg.OutputsRequest{Job: 17}, wire.Msgpack)
	if err != nil {
		t.Fatal(err)
	}
	once := func() error {
		_, err := west.net.Connect("alice").Request(west.within(), messages.Subject("west", messages.Depot, jobmsg.VerbOutputs, "alice"), payload)
		return err
	}
	waiting := make(chan error, peerPlaces)
	for range peerPlaces {
		go func() { waiting <- once() }()
	}
	for range peerPlaces {
		<-asked
	}
	wantKind(t, "one more", once(), messages.Unavailable)
	if _, _, err := west.send(jobmsg.VerbPut, "bob", messages.Attempt{}, "content"); err != nil {
		t.Errorf("bob sends a file: %v", err)
	}
	close(answer)
	for range peerPlaces {
		if err := <-waiting; err != nil {
			t.Error(err)
		}
	}
}
