package shapes

import (
	"github.com/candor-grid/candor/deploy/simulated/swf"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages/job"
)

// The constant file is the name of the log. The log has the jobs of a machine of 1,024 nodes with 8 processors and 12
// GB each.
const file = "RICC-2010-2.swf.gz"

const (
	nodeSlots = 8
	day       = 86400.0
	week      = 7 * day
)

// unit has the resources of a slot: an eighth of a node.
var unit = job.Resources{CPUs: 1, Memory: 3 << 29}

// machine is a part of the log, and the nodes that run it.
type machine struct {
	work   *workload.Workload // the width of a job is the number of its tasks
	shapes []job.Resources    // by job: the resources of each of its tasks
	widths []int              // by job: the slots of each of its tasks
	from   float64            // when the first job was submitted, in seconds from the log's beginning
	until  float64            // end of the horizon
}

// sample says which jobs of the log a machine runs.
type sample struct {
	week  int // week of the log, from 0
	one   int // one job is taken from each group of this many jobs
	nodes int // nodes of the machine; 0 if overload decides the number
	small bool
}

// A sample is a part of a log. If a sample has no number of nodes, take chooses a number. With it, the sample's work is
// 1.1 times the slot time that the nodes have in a week.
const overload = 1.1

func (s sample) take(log *swf.Log) (*machine, error) {
	own, memory, work := &swf.Log{Header: log.Header}, map[int]int64{}, 0.0
	for i := range log.Jobs {
		j := &log.Jobs[i]
		if j.Number%int64(s.one) != 0 || j.Submit < int64(s.week)*int64(week) || j.Submit >= int64(s.week+1)*int64(week) || j.Run < 0 || j.Width() < 1 {
			continue
		}
		tasks, shape := divide(int(j.Width()), j.Memory<<10)
		if s.small && tasks > 1 {
			continue
		}
		width, _ := unit.Width(shape)
		work += float64(tasks*width) * float64(j.Run)
		memory[j.Line] = j.Memory << 10
		own.Jobs = append(own.Jobs, *j)
	}
	if s.nodes == 0 {
		s.nodes = max(1, int(work/nodeSlots/week/overload))
	}
	w, err := workload.New(own, workload.Options{Nodes: s.nodes * nodeSlots, Parallel: workload.Split})
	if err != nil {
		return nil, err
	}
	m := &machine{work: w, until: float64(s.week+1) * week}
	m.from, _ = w.Span()
	for i := range w.Jobs {
		j := &w.Jobs[i]
		tasks, shape := divide(j.Width, memory[j.Line])
		width, _ := unit.Width(shape)
		j.Width = tasks
		m.shapes, m.widths = append(m.shapes, shape), append(m.widths, width)
	}
	return m, nil
}

// divide divides a job into equal tasks. The job needs some processors, each with some memory. Each task must fit on a
// node, and there are as few tasks as possible.
func divide(processors int, memory int64) (tasks int, shape job.Resources) {
	node := unit.Times(nodeSlots)
	memory = min(max(memory, 1), node.Memory)
	most := min(nodeSlots, int(node.Memory/memory))
	tasks = (processors + most - 1) / most
	cpus := (processors + tasks - 1) / tasks
	return tasks, job.Resources{CPUs: cpus, Memory: int64(cpus) * memory}
}

// capacity returns the slot time that all nodes of the machine have in the simulated period.
func (m *machine) capacity() float64 { return float64(m.work.Nodes) * (m.until - m.from) }

// slots returns the slots of all tasks of a job.
func (m *machine) slots(i int) int { return m.work.Jobs[i].Width * m.widths[i] }
