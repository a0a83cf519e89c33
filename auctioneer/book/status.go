package book

import "github.com/candor-grid/candor/messages"

// PastShares are the shares that the job was settled on; nil before.
func (j *Job) PastShares() []messages.ClassShare {
	var out []messages.ClassShare
	for _, s := range j.Shares {
		out = append(out, messages.ClassShare{Class: s.Class, Allocated: float64(s.Allocated) / 1e6, Received: float64(s.Received) / 1e6, Over: s.Over})
	}
	return out
}

// StageStatuses are the job's stages as its owner sees them.
func (j *Job) StageStatuses() []messages.StageStatus {
	out := make([]messages.StageStatus, len(j.Stages))
	for i := range j.Stages {
		s, spec := &j.Stages[i], &j.Spec.Stages[i]
		out[i] = messages.StageStatus{Name: spec.Name, Class: spec.Class, Tasks: s.Total, Pending: j.Claimable(i), Running: s.Running,
			Done: s.Done, Retried: s.Retried, Started: s.Started, Ended: s.Ended, SlotTime: s.SlotTime, Suspended: s.Suspended, CPU: s.CPU, MaxRSS: s.MaxRSS}
	}
	return out
}
