package rigid

import (
	"math"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/heap"
)

// Policy decides which jobs start. Jobs are given by their index.
type Policy interface {
	// Arrive tells the policy that a job was submitted. End tells it that a job has ended and returned its nodes.
	Arrive(m *Machine, job int)
	End(m *Machine, job int)
	// Decide starts jobs, by m.Start. If several events have the same time, it is called once, after the last one.
	Decide(m *Machine)
}

// Expecting is a Policy that uses the estimates of run times to plan ahead.
type Expecting interface {
	Policy
	// Outlive tells the policy that a job has reached its expected end and still runs. The argument `until` is the
	// job's new expected end.
	Outlive(m *Machine, job int, until float64)
	// Next returns when to call Decide without an event; +Inf means never.
	Next() float64
}

// Machine is the state of a run.
type Machine struct {
	Jobs []Job
	Now  float64
	Free int // number of free nodes

	schedule  Schedule
	running   []event   // a heap, in the order inTime
	expecting Expecting // nil if the policy ignores estimates
	expected  []float64 // by job: expected total time
}

// Run checks an instance, and runs it with a policy.
func Run(in *Instance, p Policy) (*Schedule, error) {
	if err := in.Check(); err != nil {
		return nil, err
	}
	n := len(in.Jobs)
	m := &Machine{Jobs: in.Jobs, Free: in.Nodes, schedule: Schedule{make([]float64, n), make([]float64, n)}}
	for i := range n {
		m.schedule.Start[i] = math.NaN()
	}
	if e, ok := p.(Expecting); ok {
		m.expecting = e
		m.expected = make([]float64, n)
	}
	m.Now = math.Inf(-1)
	arrivals := in.Arrivals()
	for {
		if m.Now = m.next(arrivals); math.IsInf(m.Now, 1) {
			return m.done()
		}
		m.end(p)
		for len(arrivals) > 0 && m.Jobs[arrivals[0]].Submit <= m.Now {
			p.Arrive(m, arrivals[0])
			arrivals = arrivals[1:]
		}
		p.Decide(m)
	}
}

// done returns the schedule, or an error if the policy left jobs waiting.
func (m *Machine) done() (*Schedule, error) {
	for i, start := range m.schedule.Start {
		if math.IsNaN(start) {
			return nil, messages.Errorf(messages.Internal, "job %d was never started", i)
		}
	}
	return &m.schedule, nil
}

func (m *Machine) next(arrivals []int) float64 {
	next := math.Inf(1)
	if len(arrivals) > 0 {
		next = m.Jobs[arrivals[0]].Submit
	}
	if len(m.running) > 0 {
		next = min(next, m.running[0].at)
	}
	if m.expecting != nil {
		if wake := m.expecting.Next(); wake > m.Now {
			next = min(next, wake)
		}
	}
	return next
}

// end ends the jobs that end now, and tells the policy about jobs that outlive their expected end.
func (m *Machine) end(p Policy) {
	for len(m.running) > 0 && m.running[0].at <= m.Now {
		e := inTime.Pop(&m.running)
		if e.outlives {
			m.expected[e.job] *= 2
			m.expecting.Outlive(m, e.job, m.watch(e.job))
			continue
		}
		m.Free += m.Jobs[e.job].Width
		p.End(m, e.job)
	}
}

// Start starts a job now. Enough nodes must be free.
func (m *Machine) Start(job int) {
	j := &m.Jobs[job]
	m.Free -= j.Width
	m.schedule.Start[job], m.schedule.Finish[job] = m.Now, m.Now+j.Runtime
	if m.expecting == nil {
		inTime.Push(&m.running, event{at: m.Now + j.Runtime, job: job})
		return
	}
	m.expected[job] = j.Estimate
	m.watch(job)
}

// watch adds the next event of a running job to the queue. This is the end of the job, or the time when its estimate
// ends, if that is earlier. watch returns the expected end.
func (m *Machine) watch(job int) (until float64) {
	start, finish := m.schedule.Start[job], m.schedule.Finish[job]
	until = start + m.expected[job]
	for until <= m.Now && finish > m.Now { // the expected end may be rounded to now
		m.expected[job] *= 2
		until = start + m.expected[job]
	}
	inTime.Push(&m.running, event{at: min(until, finish), job: job, outlives: until < finish})
	return until
}

// Until returns when a running job is expected to end.
func (m *Machine) Until(job int) float64 { return m.schedule.Start[job] + m.expected[job] }

// event is the end of a job, or the time at which a job was expected to end but continues.
type event struct {
	at       float64
	job      int
	outlives bool
}

// inTime orders events by time, then by job.
var inTime = heap.Order[event]{Before: func(e, f event) bool { return e.at < f.at || e.at == f.at && e.job < f.job }}
