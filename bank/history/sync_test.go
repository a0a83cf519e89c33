package history

import (
	"testing"
	"testing/synctest"
)

// slow is a set of files whose syncs wait until the test lets them continue.
type slow struct {
	Files
	gate chan struct{}
}

func (s *slow) Sync(string) error { <-s.gate; return nil }
func (s *slow) Commit() error     { return nil }

// Two calls sync the same file. The second call must not return before the first one has made the file durable.
func TestSyncWaitsForTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := &slow{gate: make(chan struct{})}
		s := New(files, SegmentBytes, nil)
		s.unsynced = []string{"a"}
		done := 0
		for range 2 {
			go func() {
				if durable, err := s.Sync(); !durable || err != nil {
					t.Errorf("%v, %v", durable, err)
				}
				done++
			}()
			synctest.Wait()
		}
		if done != 0 {
			t.Errorf("%d calls returned while a file was not durable", done)
		}
		close(files.gate)
		synctest.Wait()
		if done != 2 {
			t.Errorf("%d of 2 calls returned", done)
		}
	})
}
