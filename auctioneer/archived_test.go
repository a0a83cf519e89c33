package auctioneer

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/archive"
	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/siteclock"
)

// The function `past` submits, runs and ends jobs of alice in the log of a site.
func past(t *testing.T, m mailbox.Machine, jobs int) {
	t.Helper()
	apply := func(c *book.Command) any {
		c.Stamp(messages.TimeOf(time.Now()), 0, false)
		data, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		results, err := m.Apply(0, [][]byte{data})
		if err != nil {
			t.Fatal(err)
		}
		if err, bad := results[0].(error); bad {
			t.Fatal(err)
		}
		return results[0]
	}
	effect := uint64(0)
	for done := 0; done < jobs; {
		var ids []messages.JobID
		for range min(500, jobs-done) {
			done++
			spec := oneStage(2)
			spec.Market, spec.Stages[0].Class, spec.Name = "main", "map", fmt.Sprint("old-", done)
			ids = append(ids, apply(&book.Command{Submit: &book.Submit{Account: "alice", Key: fmt.Sprint("old", done), Payer: "alice",
				Hold: fmt.Sprint("job/", done), Held: spec.Budget, Spec: &spec}}).(book.Receipt).Job)
		}
		apply(&book.Command{CancelJobs: &book.CancelJobs{Jobs: ids, By: "alice"}})
		for _, id := range ids {
			apply(&book.Command{Settle: &book.Settle{Job: id, Reason: "nothing ran"}})
		}
		for range 2 { // confirm the charges, and then the observations
			c := &book.Confirm{}
			for range ids {
				effect++
				c.Effects = append(c.Effects, book.Confirmation{Effect: effect})
			}
			apply(&book.Command{Confirm: c})
		}
	}
}

// withPast starts an auctioneer with an archive and with ended jobs in its book.
func withPast(t *testing.T, dir string, jobs int) *fixture {
	t.Helper()
	f := startWith(t, func(c *Config) {
		records, err := archive.Open(archive.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		c.Archive = records
		opens := c.Open
		c.Open = func(m mailbox.Machine) (mailbox.Mailbox, error) {
			past(t, m, jobs)
			return opens(m)
		}
	})
	return f
}

// More jobs end than the book remembers. Owner and operators must find each job, other users must not, and lists must
// reach back to the first job.
func TestEndedJobsAreFound(t *testing.T) {
	const jobs = book.RetainEnded + 1500
	f := withPast(t, t.TempDir(), jobs)
	for _, id := range []messages.JobID{1, 700, 20_000, jobs} {
		d := must[job.JobDetail](f, "alice", messages.VerbJob, job.JobRequest{Job: id})
		if d.Job != id || d.Name != fmt.Sprint("old-", id) || d.State != job.Cancelled || len(d.Stages) != 1 || d.Spec.Stages[0].Command[0] != "true" {
			t.Errorf("job %d: %+v", id, d)
		}
		w := must[market.WhyReply](f, "alice", messages.VerbWhy, job.JobRequest{Job: id})
		if w.Reason != "CancelledByUser" || !strings.Contains(w.Message, "cancelled by alice") {
			t.Errorf("why %d: %+v", id, w)
		}
		if r := must[job.TasksReply](f, "operator", messages.VerbTasks, job.TasksRequest{Job: id}); r.Account != "alice" || r.Unstarted != 2 {
			t.Errorf("tasks %d: %+v", id, r)
		}
		_, err := call[job.JobDetail](f, "bob", messages.VerbJob, job.JobRequest{Job: id})
		wantKind(t, err, messages.NotFound)
	}
	_, err := call[job.CancelReply](f, "alice", messages.VerbCancel, job.CancelRequest{Job: 20_000})
	wantKind(t, err, messages.Ended)
	if r := must[job.JobsReply](f, "alice", messages.VerbJobs, job.JobsRequest{Name: "old-1*2", Sort: "job", Limit: 3}); len(r.Jobs) != 3 || r.Jobs[0].Job != 12 || r.Complete != 0 {
		t.Errorf("the first that fit: %+v", r)
	}
	if r := must[job.JobsReply](f, "bob", messages.VerbJobs, job.JobsRequest{}); len(r.Jobs) != 0 {
		t.Errorf("bob's: %+v", r)
	}
	seen := messages.JobID(jobs + 1)
	for r := (job.JobsRequest{Limit: 1000}); ; {
		page := must[job.JobsReply](f, "alice", messages.VerbJobs, r)
		for _, j := range page.Jobs {
			if j.Job != seen-1 {
				t.Fatalf("job %d follows job %d", j.Job, seen)
			}
			seen = j.Job
		}
		if r.After = page.Next; !page.More {
			break
		}
	}
	if seen != 1 {
		t.Errorf("the pages end with job %d", seen)
	}
	_, err = call[job.SubmitReply](f, "alice", messages.VerbSubmit, job.SubmitRequest{Key: "old20000", Spec: oneStage(1)})
	wantKind(t, err, messages.Conflict)
}

// A new archive gets all jobs that the book forgets. The archive must report that jobs may be missing only if the book
// was restored from an image.
func TestANewArchiveLacksNothing(t *testing.T) {
	f := withPast(t, t.TempDir(), book.RetainEnded+1000)
	if lacks, ended := f.lacking(); lacks {
		t.Errorf("jobs that ended until %v are said to be missing", ended)
	}
	var image bytes.Buffer
	if _, err := f.replica.Capture().WriteTo(&image); err != nil {
		t.Fatal(err)
	}
	records, err := archive.Open(archive.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	other := newReplica(records, zap.NewNop())
	other.time = f.replica.time
	if err := other.Restore(&image); err != nil {
		t.Fatal(err)
	}
	if lacks, _ := other.lacking(other.book); !lacks {
		t.Error("a new archive is said to have the jobs of an image")
	}
}

// Level 2 adds fields to records. As long as a host may return to a release that knows only level 1, no record may have
// these fields.
func TestRecordsAreOfTheAgreedLevel(t *testing.T) {
	for level, want := range map[int]float64{1: 0, 2: 8} {
		now := messages.TimeOf(time.Now())
		records, err := archive.Open(archive.Config{Dir: t.TempDir(), SegmentBytes: 1, Clock: func() messages.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		r := newReplica(records, zap.NewNop())
		r.Agreed(level)
		hour := book.Meter{Micros: 3600e6}
		r.keep(book.Ended{Job: &book.Job{ID: 1, State: job.Completed, Ended: now, Stages: []book.Stage{{Meter: hour}},
			Spec: &job.JobSpec{Stages: []job.Stage{{Name: "s", Class: "cpu", Memory: 8 << 30}}}}})
		record, err := records.Find(1)
		if err != nil || len(record.Summary.Used) != 1 || record.Summary.Used[0].MemoryHours != want {
			t.Errorf("level %d: %+v, %v; want %v GiB times hours", level, record, err, want)
		}
	}
}

// A replica copies the leader's archive if its own archive lacks records. Two kinds of missing records must not cause
// another copy: records that are so old that they need not be kept, and records that the leader does not have either.
func TestOldRecordsAreNotMissed(t *testing.T) {
	now := messages.TimeOf(time.Now())
	records, err := archive.Open(archive.Config{Dir: t.TempDir(), SegmentBytes: 1, Clock: func() messages.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	r := newReplica(records, zap.NewNop())
	r.time = siteclock.NewSteady(func() messages.Time { return now }, nil, nil)
	past(t, r, book.RetainWhole+50)
	now = now.Add(archive.DefaultRetention + messages.Duration(time.Hour))
	if err := records.Sync(); err != nil || records.About().Records > 1 {
		t.Fatalf("%v; %d records are left after their time", err, records.About().Records)
	}
	if lacks, ended := r.lacking(r.book); lacks {
		t.Errorf("jobs that ended until %v are said to be missing", ended)
	}
	now = now.Add(-archive.DefaultRetention)
	lacks, ended := r.lacking(r.book)
	if !lacks {
		t.Error("records that were removed before their time are not missed")
	}
	r.nowhere.Store(int64(ended))
	if lacks, _ := r.lacking(r.book); lacks {
		t.Error("records that the leader has not either are missed")
	}
}

// A replica that restarts applies its log again, and adds the same jobs to the archive again. The archive must still
// have each record only once. If the archive was damaged while the replica was stopped, the damage must be reported.
func TestAStartGoesOnWithTheArchive(t *testing.T) {
	const jobs = book.RetainWhole + 50
	dir := t.TempDir()
	first := withPast(t, dir, jobs)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jobs"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	before, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	before[len(before)/2] ^= 1
	if err := os.WriteFile(files[0], before, 0o600); err != nil {
		t.Fatal(err)
	}
	f := withPast(t, dir, jobs)
	if f.replica.Weak() != nil {
		t.Error("the replica is to let others lead, and lost nothing since its start")
	}
	if about := f.Archive.About(); about.Records != 50 {
		t.Errorf("%+v", about)
	}
	if r := must[job.JobsReply](f, "alice", messages.VerbJobs, job.JobsRequest{Before: 51, Limit: 60}); len(r.Jobs) != 50 {
		t.Errorf("%d jobs after damage and another start, of which %d cannot be read", len(r.Jobs), r.Unreadable)
	}
	_, err = call[job.ArchiveReply](f, "alice", messages.VerbArchive, job.ArchiveRequest{})
	wantKind(t, err, messages.PermissionDenied)
	if err := os.Truncate(files[0], 0); err != nil {
		t.Fatal(err)
	}
	f.examineOnce(func() bool { return true })
	if f.replica.Weak() == nil {
		t.Error("the replica is not to let others lead, from whom it could copy what it lost")
	}
}

// A leader must hand over its leadership if its archive lacks records of ended jobs, because its lists of jobs would be
// incomplete. An archive lacks records if the replica started from an image, or if its disk was full.
func TestAReplicaThatLacksRecordsLetsOthersLead(t *testing.T) {
	const jobs = book.RetainWhole + 50
	bare := func(dir string) *replica {
		records, err := archive.Open(archive.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = records.Close() })
		r := newReplica(records, zap.NewNop())
		r.time = siteclock.NewSteady(func() messages.Time { return epoch }, nil, nil)
		return r
	}
	dir := t.TempDir()
	whole := bare(dir)
	past(t, whole, jobs)
	if err := whole.Weak(); err != nil {
		t.Errorf("a replica that lacks nothing: %v", err)
	}
	var image bytes.Buffer
	if _, err := whole.Capture().WriteTo(&image); err != nil {
		t.Fatal(err)
	}
	for name, has := range map[string]string{"its own archive": dir, "a new disk": t.TempDir()} {
		r := bare(has)
		if err := r.Restore(bytes.NewReader(image.Bytes())); err != nil {
			t.Fatal(err)
		}
		if err := r.Weak(); (err == nil) != (has == dir) {
			t.Errorf("with %s: %v", name, err)
		}
	}
	full := bare(filepath.Join(t.TempDir(), "archive"))
	if err := os.RemoveAll(full.archive.Dir); err != nil {
		t.Fatal(err)
	}
	past(t, full, jobs)
	if full.Weak() == nil {
		t.Error("a replica that could not write records is to let others lead")
	}
}

// A job can name an earlier job that it repeats. The earlier job must belong to the same account, and may be in the
// archive. For a job of another account, the error is the same as for a missing job.
func TestRerunIsOfAJobOfOnesOwn(t *testing.T) {
	const jobs = book.RetainEnded + 1500
	f := withPast(t, t.TempDir(), jobs)
	again := func(account messages.Name, of messages.JobID) (job.SubmitReply, error) {
		spec := oneStage(1)
		spec.RerunOf = of
		return call[job.SubmitReply](f, account, messages.VerbSubmit, job.SubmitRequest{Key: fmt.Sprint("again-", of), Spec: spec})
	}
	for _, id := range []messages.JobID{0, 1, jobs} {
		first, err := again("alice", id)
		if err != nil {
			t.Fatalf("of her job %d: %v", id, err)
		}
		if second, err := again("alice", id); err != nil || second.Job != first.Job {
			t.Errorf("the same request again: %+v %v", second, err)
		}
	}
	told := map[string]bool{}
	for _, id := range []messages.JobID{1, jobs, 1_000_000} {
		_, err := again("bob", id)
		wantKind(t, err, messages.NotFound)
		told[strings.ReplaceAll(messages.Detail(err), fmt.Sprint("job ", id), "job N")] = true
	}
	if len(told) != 1 {
		t.Errorf("bob hears which jobs there are: %v", told)
	}
	if _, err := again("operator", 1); messages.KindOf(err) == messages.NotFound {
		t.Errorf("an operator, who sees all jobs: %v", err)
	}
}

// A job is missing because the site was restored from an older backup. The error must say that the site was restored,
// and to which time.
func TestAJobThatARestorationLost(t *testing.T) {
	a := &site{replica: newReplica(nil, zap.NewNop())}
	restored := messages.Time(1_900_000_000_000_000)
	ask := func(id messages.JobID) error {
		_, err := a.find("ada", id, messages.Errorf(messages.NotFound, "there is no job %d", id))
		return err
	}
	if err := ask(231); err == nil || strings.Contains(err.Error(), "restored") {
		t.Errorf("before a restoration: %v", err)
	}
	a.replica.book.Apply(&book.Command{At: restored + 9, Restored: &book.Restored{Backup: restored, Last: 1000}})
	if err := ask(231); messages.KindOf(err) != messages.NotFound || !strings.Contains(err.Error(), "restored to its state at "+restored.String()) {
		t.Errorf("a job that was lost: %v", err)
	}
	if err := ask(1001); err == nil || strings.Contains(err.Error(), "restored") {
		t.Errorf("a job that is to come: %v", err)
	}
}
