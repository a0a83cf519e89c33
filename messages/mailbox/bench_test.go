package mailbox

import (
	"context"
	"sync/atomic"
	"testing"
)

// nothing is a machine that carries out commands without any work, so that a benchmark measures only the log.
type nothing struct{ tally }

var empty = struct{}{}

func (*nothing) Apply(_ uint64, commands [][]byte) ([]any, error) {
	results := make([]any, len(commands))
	for i := range results {
		results[i] = empty
	}
	return results, nil
}

func raft3(b *testing.B) Mailbox {
	g := newGroup(b, 3, nil)
	for _, id := range g.ids {
		box, err := OpenRaft(g.config(id), &nothing{})
		if err != nil {
			b.Fatal(err)
		}
		g.boxes[id] = box.(*replicated)
	}
	return g.leader()
}

func propose(b *testing.B, m Mailbox, command []byte) {
	if _, err := m.Propose(context.Background(), command); err != nil {
		b.Error(err)
	}
}

// BenchmarkProposeRaft3 commits 100-byte commands on three durable replicas.
func BenchmarkProposeRaft3(b *testing.B) {
	m := raft3(b)
	command := make([]byte, 100)
	b.Run("serial", func(b *testing.B) {
		for b.Loop() {
			propose(b, m, command)
		}
	})
	for _, c := range []struct {
		name    string
		perCore int
	}{{"64callers", 32}, {"1024callers", 512}, {"8192callers", 4096}} {
		b.Run(c.name, func(b *testing.B) { proposeParallel(b, m, c.perCore) })
	}
}

// proposeParallel measures proposals by many callers at the same time, and how many commands shared a log entry.
func proposeParallel(b *testing.B, m Mailbox, perCore int) {
	before := m.Status()
	command := make([]byte, 100)
	b.SetParallelism(perCore)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			propose(b, m, command)
		}
	})
	after := m.Status()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commands/s")
	b.ReportMetric(float64(after.Commands-before.Commands)/float64(after.Entries-before.Entries), "commands/entry")
}

// BenchmarkVerifyRaft3 measures a confirmation of leadership, by one caller and by 1,000 callers for each core.
func BenchmarkVerifyRaft3(b *testing.B) {
	m := raft3(b)
	verify := func() {
		if err := m.Verify(context.Background()); err != nil {
			b.Error(err)
		}
	}
	b.Run("serial", func(b *testing.B) {
		for b.Loop() {
			verify()
		}
	})
	b.Run("parallel", func(b *testing.B) {
		before := m.(*replicated).verified.Load()
		var calls atomic.Uint64
		b.SetParallelism(1000)
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				verify()
				calls.Add(1)
			}
		})
		b.ReportMetric(float64(calls.Load())/float64(m.(*replicated).verified.Load()-before), "calls/round")
	})
}

// BenchmarkProposeMemory measures commands in the mailbox in memory.
func BenchmarkProposeMemory(b *testing.B) {
	m := NewMemory(&nothing{})
	command := make([]byte, 100)
	for b.Loop() {
		propose(b, m, command)
	}
}
