package rigid

import "math"

// Measures are numbers that say how good a schedule is.
type Measures struct {
	Flow        []float64 `json:"flow"` // by job
	BSD         []float64 `json:"bsd"`  // by job: bounded slowdown
	Makespan    float64   `json:"makespan"`
	Utilisation float64   `json:"utilisation"`
	MeanFlow    float64   `json:"mean_flow"` // 0 if there are no jobs
	MeanBSD     float64   `json:"mean_bsd"`
}

// minute is the bound in a bounded slowdown: a shorter run time counts as a minute.
const minute = 60

// Measure computes the measures of a schedule of the instance.
func (in *Instance) Measure(s *Schedule) *Measures {
	n := len(in.Jobs)
	m := &Measures{Flow: make([]float64, n), BSD: make([]float64, n)}
	first, last, work := math.Inf(1), math.Inf(-1), 0.0
	for i, job := range in.Jobs {
		m.Flow[i] = s.Finish[i] - job.Submit
		m.BSD[i] = m.Flow[i] / max(job.Runtime, minute)
		m.MeanFlow += m.Flow[i] / float64(n)
		m.MeanBSD += m.BSD[i] / float64(n)
		first, last = min(first, job.Submit), max(last, s.Finish[i])
		work += float64(job.Width) * job.Runtime
	}
	if n > 0 {
		m.Makespan = last - first
	}
	if m.Makespan > 0 {
		m.Utilisation = work / (float64(in.Nodes) * m.Makespan)
	}
	return m
}
