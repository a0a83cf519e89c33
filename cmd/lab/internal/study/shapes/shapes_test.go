package shapes

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/candor-grid/candor/deploy/simulated/swf"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages/job"
)

// The function `of` returns a machine with the given number of nodes. Each piece becomes one of its jobs. The market is
// measured only until the time `until`.
func of(nodes int, until float64, pieces ...piece) *machine {
	m := &machine{work: &workload.Workload{Nodes: nodes * nodeSlots, Parallel: workload.Split, Users: []int64{1}, Groups: []int64{1}}, until: until}
	sortStable(pieces, func(x, y piece) int { return cmp.Compare(x.submit, y.submit) })
	for i, p := range pieces {
		m.work.Jobs = append(m.work.Jobs, workload.Job{Number: int64(i + 1), Line: i + 1, Submit: p.submit, Runtime: p.runtime, Width: 1})
		m.widths, m.shapes = append(m.widths, p.width), append(m.shapes, unit.Times(p.width))
	}
	return m
}

// Each case has a job with a number of processors and a memory in KiB per processor.
func TestJobsAreDividedIntoEqualTasks(t *testing.T) {
	const kib = 1 << 10
	for _, c := range []struct {
		processors         int
		memory             int64
		tasks, cpus, slots int
	}{
		{1, -1, 1, 1, 1}, {1, 1_200_000, 1, 1, 1}, {8, 1_200_000, 1, 8, 8}, {32, 1_200_000, 4, 8, 8}, {12, 1_200_000, 2, 6, 6},
		{1, 4_000_000, 1, 1, 3}, {1, 9_500_000, 1, 1, 7}, {4, 4_800_000, 2, 2, 7}, {2, 20_000_000, 2, 1, 8},
	} {
		tasks, shape := divide(c.processors, c.memory*kib)
		if width, ok := unit.Width(shape); tasks != c.tasks || shape.CPUs != c.cpus || width != c.slots || !ok {
			t.Errorf("%d processors with %d KiB: %d tasks of %v on %d slots, want %d tasks of %d processors on %d slots", c.processors, c.memory, tasks, shape, width, c.tasks, c.cpus, c.slots)
		}
	}
}

// Whenever a piece starts, its node must have enough free slots. The slot time sold must be the same as with a slow
// packing, which looks at each second.
func TestThePackingNeverOversellsANode(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var pieces []piece
		for range 1 + r.IntN(25) {
			pieces = append(pieces, piece{float64(r.IntN(20)), float64(1 + r.IntN(15)), 1 + r.IntN(nodeSlots)})
		}
		m := of(1+r.IntN(3), 30, pieces...)
		for _, by := range orders {
			if got, want := m.pack(by), m.slowly(by); math.Abs(got-want) > 1e-9 {
				t.Fatalf("%v on %d nodes: sells %v, the slow packing %v", pieces, m.work.Nodes/nodeSlots, got, want)
			}
		}
		if m.packing() > m.bound()+1e-9 {
			t.Fatalf("%v: the packing sells %v, above the bound %v", pieces, m.packing(), m.bound())
		}
	}
}

// slowly computes the same as the function pack, but in a simple way: for the start of each piece, it tries all seconds
// one after another.
func (m *machine) slowly(by func(x, y piece) int) (sold float64) {
	all, free := m.pieces(), make([][100]int, m.work.Nodes/nodeSlots)
	sortStable(all, by)
	for _, p := range all {
		for at := int(p.submit); at < int(m.until); at++ {
			if node := fitting(free, at, &p); node >= 0 {
				for s := at; s < at+int(p.runtime); s++ {
					if free[node][s] += p.width; free[node][s] > nodeSlots {
						panic(fmt.Sprint("oversold at ", s))
					}
				}
				sold += p.within(float64(at), m.until)
				break
			}
		}
	}
	return sold
}

// sortStable is an insertion sort: it keeps equal pieces in their order.
func sortStable(all []piece, by func(x, y piece) int) {
	for i := range all {
		for k := i; k > 0 && by(all[k-1], all[k]) > 0; k-- {
			all[k-1], all[k] = all[k], all[k-1]
		}
	}
}

// fitting returns the first node that has room for a piece. The piece starts `at` seconds after the beginning. If no
// node has room, fitting returns −1.
func fitting(used [][100]int, at int, p *piece) int {
	for node := range used {
		fits := true
		for s := at; s < at+int(p.runtime); s++ {
			fits = fits && used[node][s]+p.width <= nodeSlots
		}
		if fits {
			return node
		}
	}
	return -1
}

// The upper bound of the slot time assumes one node that has all slots. So the bound also counts tasks that the real
// nodes cannot run at the same time.
func TestTheBoundIsThatOfOneNode(t *testing.T) {
	m := of(1, 10, piece{0, 10, 5}, piece{0, 10, 5}, piece{9, 100, 8})
	if got := m.bound(); got != 80 {
		t.Errorf("the bound is %v, want 80 of 80", got)
	}
	if got := m.packing(); got != 50 {
		t.Errorf("the packing sells %v, want 50", got)
	}
}

// Three tasks run one after another, each on the whole node. The second task runs when the horizon passes, and the
// third begins after the horizon. Only slot time before the horizon may count.
func TestAMarketIsMeasuredUntilTheHorizon(t *testing.T) {
	m := of(1, 150, piece{0, 100, 8}, piece{0, 100, 8}, piece{0, 100, 8})
	r, err := m.run("fifo", 1, nodeSlots)
	if err != nil {
		t.Fatal(err)
	}
	if r.Sold < 0.99 || r.Sold > 1 || r.Lost != 0 || r.Shares != [3]float64{0, 0, 1} {
		t.Errorf("%+v", r)
	}
	if math.Abs(r.Mean-100) > 1 || math.Abs(r.Median-100) > 1 || math.Abs(r.P95-200) > 1 {
		t.Errorf("waits %+v, want 0, 100 and 200 s", r)
	}
}

func TestASampleHasItsJobs(t *testing.T) {
	line := func(number, submit, run, processors, memory int) string {
		return fmt.Sprintf("%d %d 0 %d %d -1 -1 %d 1000 %d 1 1 1 -1 1 -1 -1 -1\n", number, submit, run, processors, processors, memory)
	}
	log, err := swf.Read(strings.NewReader(line(1, 0, 10, 1, 1000) + line(2, 100, 604800, 1, 4_000_000) + line(4, 200, 604800, 16, 1_000_000) + line(6, 604800, 10, 1, 1000)))
	if err != nil {
		t.Fatal(err)
	}
	m, err := sample{week: 0, one: 2, nodes: 2}.take(log)
	if err != nil || len(m.work.Jobs) != 2 || m.widths[0] != 3 || m.widths[1] != 8 || m.work.Jobs[1].Width != 2 || m.from != 100 || m.until != week {
		t.Fatalf("%v, %+v", err, m)
	}
	if m.shapes[0] != (job.Resources{CPUs: 1, Memory: 4_000_000 << 10}) {
		t.Errorf("%+v", m.shapes)
	}
	if m, err = (sample{week: 0, one: 2, small: true}).take(log); err != nil || len(m.work.Jobs) != 1 || m.work.Nodes != nodeSlots {
		t.Fatalf("%v, %+v", err, m)
	}
}
