package bank

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/bank/history"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/siteclock"
)

// signer is an archive of a bank that signs checkpoints, with files and a clock. No bank runs in its tests.
type signer struct {
	testing.TB
	*archive
	now    messages.Time
	grants int
}

func newSigner(t testing.TB) *signer {
	t.Helper()
	s := &signer{TB: t, now: 1e15}
	files, err := history.Directory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	key, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	c := &Config{Site: "here", Signer: key, History: files, SegmentBytes: history.SegmentBytes, Clock: func() messages.Time { return s.now }}
	if s.archive, err = openArchive(t.Context(), c, newMetrics()); err != nil {
		t.Fatal(err)
	}
	s.machine = newMachine(c, newMetrics(), s.archive, nil, siteclock.NewSteady(c.Clock, nil, still))
	t.Cleanup(func() {
		s.end()
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *signer) grant(records int) {
	s.Helper()
	for range records {
		s.grants++
		name := fmt.Sprintf("user-%d", s.grants)
		c := ledger.Command{Verb: ledger.Grant, At: s.now, By: "ops", Grant: money.GrantRequest{Key: name, Account: name, Amount: messages.Credit}}
		if r := s.machine.ledger.Apply(c.Encode()); r.Error != nil {
			s.Fatal(r.Error)
		}
	}
}

// The test adds records all the time. The bank must sign one checkpoint in each minute. An earlier version signed one
// checkpoint in each second after the first minute.
func TestABusyBankSignsACheckpointAMinute(t *testing.T) {
	s := newSigner(t)
	const minutes = 30
	signed, last := 0, uint64(0)
	for range minutes * 60 {
		s.grant(1)
		s.signIfDue()
		if c, _ := s.checkpoints.Last(); c.Records != last {
			signed, last = signed+1, c.Records
		}
		s.now = s.now.Add(messages.Duration(time.Second))
	}
	if signed < minutes-1 || signed > minutes {
		t.Errorf("%d checkpoints were signed in %d minutes", signed, minutes)
	}
}

// BenchmarkCheckpoint measures a checkpoint of a replica whose journal is in files. With -benchtime 900x it writes 900
// checkpoints.
func BenchmarkCheckpoint(b *testing.B) {
	for _, records := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("records=%d", records), func(b *testing.B) {
			s := newSigner(b)
			s.grant(records)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				s.grant(1)
				b.StartTimer()
				if err := s.sign(); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			b.ReportMetric(float64(s.size(b))/float64(b.N), "bytes/checkpoint")
		})
	}
}

func (s *signer) size(b *testing.B) int64 {
	f, err := s.files.Open(history.CheckpointsFile)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		b.Fatal(err)
	}
	return size
}
