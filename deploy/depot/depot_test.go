package depot

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

const patience = await.Patience

// site is a depot on a bus in memory. Its auctioneer has one job.
type site struct {
	*testing.T
	name messages.Name
	net  *bus.Network
	job  jobmsg.JobDetail
	at   jobmsg.TaskStatus // the job's only task
}

func newSite(t *testing.T, c Config) *site { return siteOn(t, bus.NewMemory(), "west", c) }

func siteOn(t *testing.T, net *bus.Network, name messages.Name, c Config) *site {
	s := &site{T: t, name: name, net: net}
	s.job.Job, s.job.Account = 7, "alice"
	s.job.Spec.Stages = []jobmsg.Stage{{Name: "main"}}
	s.at = jobmsg.TaskStatus{Task: messages.TaskRef{Job: 7}, Attempt: 2, Node: "node1"}
	at := func(verb string, handle bus.Handler) bus.Endpoint {
		return bus.Endpoint{Name: verb, Subject: messages.Subject(name, messages.Auctioneer, verb, "*"), Handle: handle}
	}
	_, err := s.net.Connect("$auctioneer").Serve(bus.Service{Name: "candor-auctioneer", Version: "1.0.0", Endpoints: []bus.Endpoint{
		at(messages.VerbJob, bus.Handle("job", func(context.Context, messages.Name, jobmsg.JobRequest) (jobmsg.JobDetail, error) {
			return s.job, nil
		})),
		at(messages.VerbTasks, bus.Handle("tasks", func(context.Context, messages.Name, jobmsg.TasksRequest) (jobmsg.TasksReply, error) {
			return jobmsg.TasksReply{Account: s.job.Account, Tasks: []jobmsg.TaskStatus{s.at}}, nil
		})),
	}})
	if err != nil {
		t.Fatal(err)
	}
	c.Site, c.Operator, c.Bus = name, "operator", s.net.Connect("$depot")
	d, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *site) within() context.Context {
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	s.Cleanup(cancel)
	return ctx
}

func ask[Reply any](s *site, verb string, as messages.Name, request any) (Reply, error) {
	return bus.Call[Reply](s.within(), s.net.Connect(as), messages.Subject(s.name, messages.Depot, verb, as), request)
}

func (s *site) send(verb string, as messages.Name, attempt messages.Attempt, content string) (jobmsg.File, bool, error) {
	s.Helper()
	f, err := bus.Digest("file", strings.NewReader(content))
	if err != nil {
		s.Fatal(err)
	}
	sent, err := bus.SendFile(s.within(), s.net.Connect(as), messages.Subject(s.name, messages.Depot, verb, as), attempt, f, strings.NewReader(content))
	return f, sent, err
}

func (s *site) receive(verb string, as messages.Name, attempt messages.Attempt, f jobmsg.File) (string, error) {
	var b bytes.Buffer
	err := bus.ReceiveFile(s.within(), s.net.Connect(as), messages.Subject(s.name, messages.Depot, verb, as), attempt, f, &b)
	return b.String(), err
}

// bucket returns the bucket of an account. A test uses it to change the bucket without a request to the depot.
func (s *site) bucket(account messages.Name) bus.Objects {
	s.Helper()
	o, err := s.net.Connect("$depot").Objects(s.within(), bucketName(s.name, account), bus.BucketConfig{MaxAge: time.Hour, MaxBytes: 1 << 30})
	if err != nil {
		s.Fatal(err)
	}
	return o
}

func wantKind(t *testing.T, what string, err error, kind messages.Kind) {
	t.Helper()
	if err == nil || messages.KindOf(err) != kind {
		t.Errorf("%s: %v, want %v", what, err, kind)
	}
}

// The depot sends a file in pieces of PieceSize bytes. Files of about one piece, and files of several pieces, must come
// back unchanged. Each file must be sent only once.
func TestFilesComeBack(t *testing.T) {
	s := newSite(t, Config{})
	for _, size := range []int{0, 1, jobmsg.PieceSize - 1, jobmsg.PieceSize, jobmsg.PieceSize + 1, 3 * jobmsg.PieceSize} {
		content := strings.Repeat("x", size)
		f, sent, err := s.send(jobmsg.VerbPut, "alice", messages.Attempt{}, content)
		if err != nil || sent != (size > 0) {
			t.Errorf("%d bytes: sent %v, %v", size, sent, err)
		}
		if _, again, err := s.send(jobmsg.VerbPut, "alice", messages.Attempt{}, content); again || err != nil {
			t.Errorf("%d bytes once more: sent %v, %v", size, again, err)
		}
		if got, err := s.receive(jobmsg.VerbGet, "alice", messages.Attempt{}, f); got != content || err != nil {
			t.Errorf("%d bytes: %d came back, %v", size, len(got), err)
		}
		_, err = s.receive(jobmsg.VerbGet, "bob", messages.Attempt{}, f)
		wantKind(t, "another account's", err, messages.NotFound)
	}
}

// Content that does not match its digest must be refused. After this, the right content must still be accepted.
func TestOtherContentIsRefused(t *testing.T) {
	s := newSite(t, Config{})
	f, err := bus.Digest("file", strings.NewReader("true"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = ask[jobmsg.PutReply](s, jobmsg.VerbPut, "alice", jobmsg.PutRequest{Digest: f.Digest, Size: 4, Data: []byte("fals")})
	wantKind(t, "other content", err, messages.Invalid)
	_, err = s.receive(jobmsg.VerbGet, "alice", messages.Attempt{}, f)
	wantKind(t, "a file that was refused", err, messages.NotFound)
	_, err = ask[jobmsg.PutReply](s, jobmsg.VerbPut, "alice",
		jobmsg.PutRequest{Digest: f.Digest, Size: jobmsg.PieceSize + 1, Offset: jobmsg.PieceSize, Data: []byte("e")})
	wantKind(t, "the second piece first", err, messages.Invalid)
	if _, sent, err := s.send(jobmsg.VerbPut, "alice", messages.Attempt{}, "true"); !sent || err != nil {
		t.Errorf("the true content: sent %v, %v", sent, err)
	}
	_, err = ask[jobmsg.PutReply](s, jobmsg.VerbPut, "alice", jobmsg.PutRequest{Digest: f.Digest, Size: 5})
	wantKind(t, "another size", err, messages.Invalid)
}

// Reading a damaged file must give an error.
func TestDamageIsFound(t *testing.T) {
	s := newSite(t, Config{})
	f, _, err := s.send(jobmsg.VerbPut, "alice", messages.Attempt{}, "whole")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.bucket("alice").Put(s.within(), pieceName(f.Digest, 0), []byte("whale")); err != nil {
		t.Fatal(err)
	}
	_, err = s.receive(jobmsg.VerbGet, "alice", messages.Attempt{}, f)
	wantKind(t, "a changed piece", err, messages.Internal)
	if err := s.bucket("alice").Put(s.within(), pieceName(f.Digest, 0), []byte("who")); err != nil {
		t.Fatal(err)
	}
	_, err = s.receive(jobmsg.VerbGet, "alice", messages.Attempt{}, f)
	wantKind(t, "a piece cut short", err, messages.Internal)
}

// If a user sends a file again that the depot will soon remove, the depot must ask the user for the content again.
func TestOldFilesAreSentAgain(t *testing.T) {
	s := newSite(t, Config{Retention: 1}) // half of the retention has passed at the next request
	for range 2 {
		if _, sent, err := s.send(jobmsg.VerbPut, "alice", messages.Attempt{}, "content"); !sent || err != nil {
			t.Errorf("sent %v, %v", sent, err)
		}
	}
}

func TestFullBucketIsExhausted(t *testing.T) {
	s := newSite(t, Config{Quota: 100})
	_, _, err := s.send(jobmsg.VerbPut, "alice", messages.Attempt{}, strings.Repeat("x", 101))
	wantKind(t, "beyond the quota", err, messages.Exhausted)
	if _, _, err := s.send(jobmsg.VerbPut, "bob", messages.Attempt{}, "x"); err != nil {
		t.Errorf("another account: %v", err)
	}
}

// An agent must act only for the latest attempt that it was given.
func TestAgentsActForTheirTasks(t *testing.T) {
	s := newSite(t, Config{})
	input, _, err := s.send(jobmsg.VerbPut, "alice", messages.Attempt{}, "input")
	if err != nil {
		t.Fatal(err)
	}
	s.job.Spec.Stages[0].Inputs = []jobmsg.File{input}
	mine := messages.Attempt{Task: s.at.Task, Number: 2}
	if got, err := s.receive(jobmsg.VerbTake, "node1", mine, input); got != "input" || err != nil {
		t.Errorf("the input: %q, %v", got, err)
	}
	output, _, err := s.send(jobmsg.VerbGive, "node1", mine, "output")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ask[messages.Empty](s, jobmsg.VerbDeliver, "node1", jobmsg.DeliverRequest{Attempt: mine, Files: []jobmsg.File{output}}); err != nil {
		t.Fatal(err)
	}
	reply, err := ask[jobmsg.OutputsReply](s, jobmsg.VerbOutputs, "alice", jobmsg.OutputsRequest{Job: 7, Limit: 3})
	if err != nil || reply.Next != 3 || len(reply.Tasks) != 1 || reply.Tasks[0].Attempt != mine || reply.Tasks[0].Files[0] != output {
		t.Errorf("alice finds %+v, %v; want one list, %+v of attempt %v, and to go on at 3", reply, err, output, mine)
	}
	if reply, err := ask[jobmsg.OutputsReply](s, jobmsg.VerbOutputs, "bob", jobmsg.OutputsRequest{Job: 7}); err != nil || len(reply.Tasks) != 0 {
		t.Errorf("bob finds %+v, %v", reply, err)
	}
	if got, err := s.receive(jobmsg.VerbGet, "alice", messages.Attempt{}, output); got != "output" || err != nil {
		t.Errorf("the output: %q, %v", got, err)
	}
	_, err = s.receive(jobmsg.VerbTake, "node2", mine, input)
	wantKind(t, "another node's task", err, messages.PermissionDenied)
	_, err = s.receive(jobmsg.VerbTake, "node1", mine, output)
	wantKind(t, "what is no input", err, messages.PermissionDenied)

	s.at.Attempt, s.at.Node = 3, "node2" // the task was lost and given to another node
	_, err = ask[messages.Empty](s, jobmsg.VerbDeliver, "node1", jobmsg.DeliverRequest{Attempt: mine})
	wantKind(t, "an attempt that was given again", err, messages.Fenced)
}

func TestConfigRefuses(t *testing.T) {
	b := bus.NewMemory().Connect("$depot")
	for what, c := range map[string]Config{
		"no site":     {Bus: b, Operator: "o"},
		"no bus":      {Site: "west", Operator: "o"},
		"no operator": {Site: "west", Bus: b},
		"retention":   {Site: "west", Bus: b, Operator: "o", Retention: -1},
		"quota":       {Site: "west", Bus: b, Operator: "o", Quota: -1},
	} {
		_, err := Start(c)
		wantKind(t, what, err, messages.Invalid)
	}
}

// No two accounts may have the same bucket.
func TestBucketNames(t *testing.T) {
	seen := map[string]string{}
	for _, site := range []messages.Name{"a", "a_1_b", "a_b", "a-1"} {
		for _, account := range []messages.Name{"b", "b_1_b", "a_1_b", "b_3_b_1", "b-1", VisitorsOf("b"), VisitorsOf("b_1_b")} {
			name := bucketName(site, account)
			if other := seen[name]; other != "" {
				t.Errorf("%s of %s has the bucket of %s", account, site, other)
			}
			seen[name] = account + " of " + site
		}
	}
}

// A request stores other content under the digest of a stored file. The request must be refused, and the file must not
// change.
func TestAKeptFileIsNotSpoiled(t *testing.T) {
	s := newSite(t, Config{Retention: 1}) // the retention is so short that each request stores its file again
	f, _, err := s.send(jobmsg.VerbPut, "alice", messages.Attempt{}, "content")
	if err != nil {
		t.Fatal(err)
	}
	_, err = ask[jobmsg.PutReply](s, jobmsg.VerbPut, "alice", jobmsg.PutRequest{Digest: f.Digest, Size: f.Size, Data: []byte("CONTENT")})
	wantKind(t, "other content", err, messages.Invalid)
	_, err = ask[jobmsg.PutReply](s, jobmsg.VerbPut, "alice", jobmsg.PutRequest{Digest: f.Digest, Size: f.Size - 1, Data: []byte("conten")})
	wantKind(t, "another size", err, messages.Invalid)
	if got, err := s.receive(jobmsg.VerbGet, "alice", messages.Attempt{}, f); got != "content" || err != nil {
		t.Errorf("the file is %q, %v", got, err)
	}
	if err := s.bucket("alice").Put(s.within(), pieceName(f.Digest, 0), []byte("damaged")); err != nil {
		t.Fatal(err)
	}
	if _, sent, err := s.send(jobmsg.VerbPut, "alice", messages.Attempt{}, "content"); !sent || err != nil {
		t.Errorf("a damaged file is not mended: sent %v, %v", sent, err)
	}
}
