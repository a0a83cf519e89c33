package nodeagent_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent"
	"github.com/candor-grid/candor/nodeagent/runner"
)

func crowd(t testing.TB, network *bus.Network, l *leader, n, slots int) {
	shared := network.Connect("nodes")
	for i := range n {
		a, err := nodeagent.Start(context.Background(), nodeagent.Config{
			Site: "home", Node: fmt.Sprint("n", i), Slots: []job.ClassSlots{{Class: "cpu", Slots: slots}},
			Bus: shared, Runner: runner.Instant{}, Seed: uint64(i + 1),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close() })
		<-a.Ready()
	}
}

// TestWakesInProportion offers one task to a thousand idle agents, and then a thousand tasks. The number of claims must
// be in proportion to the number of tasks. If each agent sent a claim for each task, there would be a million claims.
func TestWakesInProportion(t *testing.T) {
	network := bus.NewMemory()
	l := newLeader(t, network, time.Hour)
	crowd(t, network, l, 1000, 1)
	for _, c := range []struct{ tasks, most int }{{1, 20}, {1000, 3000}} {
		done, before := get(l, func() int { return len(l.finished) }), get(l, func() int { return l.claims })
		l.submit(agent.Program{Tasks: c.tasks})
		l.until("the work is done", func() bool { return len(l.finished) == done+c.tasks })
		if claims := get(l, func() int { return l.claims }) - before; claims > c.most {
			t.Errorf("%d claims for %d tasks, want at most %d", claims, c.tasks, c.most)
		}
	}
}

// BenchmarkDispatch measures the tasks per second through claim, start and finish, with 64 agents of 16 slots each. The
// leader writes no log.
func BenchmarkDispatch(b *testing.B) {
	network := bus.NewMemory()
	l := newLeader(b, network, time.Hour)
	crowd(b, network, l, 64, 16)
	b.ResetTimer()
	l.submit(agent.Program{Tasks: b.N})
	l.until("the work is done", func() bool { return len(l.finished) == b.N })
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}

// BenchmarkIdleAgent measures the cost of one idle agent. All agents share a bus in memory.
func BenchmarkIdleAgent(b *testing.B) {
	network := bus.NewMemory()
	l := newLeader(b, network, time.Hour)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	goroutines := runtime.NumGoroutine()
	b.ResetTimer()
	crowd(b, network, l, b.N, 1)
	b.StopTimer()
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc+after.StackInuse-before.HeapAlloc-before.StackInuse)/float64(b.N), "bytes/agent")
	b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/float64(b.N), "goroutines/agent")
}
