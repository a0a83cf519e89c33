package book

import (
	"runtime"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// BenchmarkMove: a market with so many waiting jobs as -benchtime says (1000000x) goes from one
// book to another, through the bytes of each command. Time is for a job; memory is bytes of heap
// for a job, of the one book before the move and of both when all has been taken over, and the
// longest that one command or look took.
func BenchmarkMove(b *testing.B) {
	apply := func(to *Book, c Command, at messages.Time) any {
		c.Stamp(at, 0)
		data, err := c.Encode()
		if err != nil {
			b.Fatal(err)
		}
		decoded, err := Decode(data)
		if err != nil {
			b.Fatal(err)
		}
		result := to.Apply(decoded)
		if err, refused := result.(error); refused {
			b.Fatal(err)
		}
		return result
	}
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / float64(b.N)
	}
	from, to, empty := New(), New(), heap()
	markets := []messages.Market{night}
	apply(from, Command{Apply: &Apply{Markets: markets}}, 1)
	for i := range b.N {
		key := messages.JobID(i).String()
		apply(from, Command{Submit: &Submit{Account: "alice", Key: key, Payer: "alice", Hold: key, Held: 100, Spec: &messages.JobSpec{
			Market: "night", Budget: 100, Stages: []messages.Stage{mapStage(1)}}}}, messages.Time(2+i))
	}
	at, before := messages.Time(2+b.N), heap()-empty
	var longest float64
	began := b.Elapsed()
	step := func() {
		longest = max(longest, (b.Elapsed() - began).Seconds())
		began = b.Elapsed()
	}
	b.ResetTimer()
	began = b.Elapsed()
	apply(from, Command{Apply: &Apply{Markets: markets, Move: &Moving{To: "dark", Markets: markets}}}, at)
	step()
	apply(from, Command{Seal: &Seal{Move: 1}}, at)
	step()
	var cargo Cargo
	for !cargo.Look(from) {
		step()
	}
	for taken, done := 0, false; !done; step() {
		t, err := cargo.Next(from, taken)
		if err != nil {
			b.Fatal(err)
		}
		t.From, t.Applied = "day", markets
		a := apply(to, Command{TakeOver: t}, at).(Arrival)
		taken, done = a.Taken, a.Done
	}
	b.StopTimer()
	both := heap() - empty
	b.StartTimer()
	began = b.Elapsed()
	for dropped := 0; dropped < cargo.Jobs(); step() {
		some := cargo.Last(dropped)
		apply(from, Command{Drop: &Drop{Move: 1, Jobs: some}}, at)
		dropped += len(some)
	}
	apply(from, Command{Apply: &Apply{Moved: 1, Markets: []messages.Market{{Name: "main", Classes: []messages.Name{"map"}}}}}, at)
	b.StopTimer()
	if from.Live("night") != 0 || to.Live("night") != b.N {
		b.Fatalf("%d jobs here, %d there", from.Live("night"), to.Live("night"))
	}
	b.ReportMetric(before, "B/job-before")
	b.ReportMetric(both, "B/job-both")
	b.ReportMetric(1000*longest, "ms-longest")
}
