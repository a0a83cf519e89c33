package book

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// A book keeps the full records of some ended jobs of each kind. For one test, whole sets the number of these jobs to
// n.
func whole(t *testing.T, n int) {
	retainWhole = n
	t.Cleanup(func() { retainWhole = RetainWhole })
}

// ended enters a job and ends it. Then it confirms the job's effects, as the bank and the estimator would.
func (s *site) ended(key string) messages.JobID {
	s.t.Helper()
	id := s.submit(key, mapStage(2))
	s.apply(Command{Cancel: &Cancel{Job: id, By: "alice"}})
	s.apply(Command{Settle: &Settle{Job: id}})
	for range 2 {
		s.apply(Command{Confirm: &Confirm{Effects: []Confirmation{{Effect: s.LastEffect()}}}})
	}
	return id
}

// Records of ended jobs leave the book. The book must keep enough to answer a repeated submission, and to decide about
// jobs that wait for the ended jobs. Each record must be handed to the archive once, in order.
func TestRecordsLeaveTheBook(t *testing.T) {
	whole(t, 2)
	s := newSite(t)
	var gone []Ended
	s.Archive(func(e Ended) { gone = append(gone, e) })
	for i := range 6 {
		s.ended(fmt.Sprint("k", i))
	}
	if listed := slices.Collect(s.Listed("alice").All()); len(gone) != 4 || !slices.Equal(listed, []messages.JobID{5, 6}) {
		t.Fatalf("%d records are gone, %v are listed", len(gone), listed)
	}
	if s.Job(4) != nil || s.Job(5) == nil {
		t.Fatalf("job 4 is in the book: %v, job 5: %v", s.Job(4) != nil, s.Job(5) != nil)
	}
	if n := s.Active(); n != 0 {
		t.Fatalf("%d jobs are active", n)
	}
	data, err := gone[2].Encode()
	if err != nil {
		t.Fatal(err)
	}
	e, err := DecodeEnded(data)
	if err != nil || e.Job == nil || e.Job.ID != 3 || e.Job.Key != "k2" || e.Job.State != job.Cancelled || e.Job.Spec.Stages[0].Tasks != 2 {
		t.Fatalf("%+v, %v", e.Job, err)
	}
	if r := s.submit("k2", mapStage(2)); r != 3 {
		t.Errorf("a submission that comes again is job %d", r)
	}
	other := s.apply(Command{Submit: &Submit{Account: "alice", Key: "k2", Payer: "alice", Digest: []byte{1}, Spec: gone[2].Job.Spec}})
	if err, refused := other.(error); !refused || messages.KindOf(err) != messages.Conflict {
		t.Errorf("another job under the key: %v", other)
	}
	spec := *gone[2].Job.Spec
	spec.AfterOK = []messages.JobID{1}
	if err := s.Dependable(&spec); messages.KindOf(err) != messages.Ended {
		t.Errorf("a job that waits for a cancelled one to complete: %v", err)
	}
	if spec.AfterOK, spec.AfterJobs = nil, []messages.JobID{1}; s.Dependable(&spec) != nil {
		t.Errorf("a job that waits for one that is over: %v", s.Dependable(&spec))
	}
	if r := s.apply(Command{Cancel: &Cancel{Job: 1, By: "alice"}}); messages.KindOf(r.(error)) != messages.Ended {
		t.Errorf("cancelled again: %v", r)
	}
}

// One image has the records of all jobs. Another image is of a book that has moved its old records to the archive. Both
// images must give the same book.
func TestAnImageWithAllRecords(t *testing.T) {
	all := newSite(t)
	whole(t, 3)
	few := newSite(t)
	few.Archive(func(Ended) {})
	for i := range 9 {
		all.ended(fmt.Sprint("k", i))
		few.ended(fmt.Sprint("k", i))
	}
	if all.Hash() == few.Hash() {
		t.Fatal("nothing was handed over")
	}
	loaded := New()
	var gone []messages.JobID
	loaded.Archive(func(e Ended) { gone = append(gone, e.Job.ID) })
	if err := loaded.Restore(bytes.NewReader(imageOf(all.Book))); err != nil {
		t.Fatal(err)
	}
	if loaded.Hash() != few.Hash() || !slices.Equal(gone, []messages.JobID{1, 2, 3, 4, 5, 6}) {
		t.Errorf("%v were handed over, and the books are alike: %v", gone, loaded.Hash() == few.Hash())
	}
	again := New()
	if err := again.Restore(bytes.NewReader(imageOf(loaded))); err != nil || again.Hash() != loaded.Hash() {
		t.Errorf("the image of a book is another book: %v", err)
	}
}
