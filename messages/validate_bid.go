package messages

import "slices"

// MaxDependencies bounds the jobs that a job can wait for.
const MaxDependencies = 1000

// MaxBegin is the latest begin time of a job: the end of the year 2199.
const MaxBegin = Time(7_258_118_400_000_000)

// validateBid makes the checks of a job's bid that do not depend on the market.
func (s *JobSpec) validateBid() error {
	for _, f := range [...]struct {
		field string
		value Credits
	}{{"rate", s.Rate}, {"value", s.Value}, {"delay", s.Delay}} {
		if f.value < 0 {
			return Errorf(Invalid, "%s: %v must not be negative", f.field, f.value)
		}
		if f.value > MaxCredits {
			return Errorf(TooLarge, "%s: %v is above the limit of %v credits", f.field, f.value, MaxCredits)
		}
	}
	switch {
	case s.Length < 0:
		return Errorf(Invalid, "length: %v must not be negative; it is the run time that the job declares", s.Length)
	case s.Deadline < 0:
		return Errorf(Invalid, "deadline: %v is before 1970; give an instant to come", s.Deadline)
	case s.Begin < 0:
		return Errorf(Invalid, "begin: %v is before 1970; give an instant to come", s.Begin)
	case s.Begin > MaxBegin:
		return Errorf(Invalid, "begin: %v is too far away", s.Begin)
	case s.Begin != 0 && s.Deadline != 0 && s.Begin >= s.Deadline:
		return Errorf(Invalid, "begin: %v is not before the deadline, %v", s.Begin, s.Deadline)
	case s.Begin != 0 && s.Contract != "":
		return Errorf(Invalid, "begin: contract %s fixes the completion time of the job; leave begin or the contract out", clip(s.Contract))
	}
	if s.Hold && s.Contract != "" {
		return Errorf(Invalid, "hold: contract %s fixes the completion time of the job; leave hold or the contract out", clip(s.Contract))
	}
	if err := checkLine("contract", s.Contract, MaxKey); err != nil || s.Valuation == nil {
		return err
	}
	return inField("valuation", s.Valuation.Validate())
}

func (s *JobSpec) validateDependencies() error {
	if n := len(s.Predecessors()); n > MaxDependencies {
		return Errorf(TooLarge, "after_jobs: %d jobs are more than the limit of %d", n, MaxDependencies)
	}
	for _, f := range [...]struct {
		field string
		jobs  []JobID
	}{{"after_jobs", s.AfterJobs}, {"after_ok", s.AfterOK}, {"after_failed", s.AfterFailed}, {"after_start", s.AfterStart}} {
		for i, id := range f.jobs {
			if id == 0 {
				return Errorf(Invalid, "%s[%d]: 0 is no job's number", f.field, i)
			}
			if slices.Contains(f.jobs[:i], id) {
				return Errorf(Invalid, "%s[%d]: job %d is given twice", f.field, i, id)
			}
		}
	}
	return nil
}

// Predecessors returns the jobs that the job waits for. A job that is in two lists is there twice.
func (s *JobSpec) Predecessors() []JobID {
	return slices.Concat(s.AfterJobs, s.AfterOK, s.AfterFailed, s.AfterStart)
}

// WaitsForEnd reports whether the job waits until another one has ended, and not only until it
// has started.
func (s *JobSpec) WaitsForEnd(id JobID) bool {
	return slices.Contains(s.AfterJobs, id) || slices.Contains(s.AfterOK, id) || slices.Contains(s.AfterFailed, id)
}

// Width returns how many slots the job needs at the same time: as many as its widest task, or as
// all tasks of its widest gang together.
func (s *JobSpec) Width() int {
	width := 1
	for i := range s.Stages {
		tasks := 1
		if s.Stages[i].Gang {
			tasks = s.Stages[i].TaskCount()
		}
		width = max(width, tasks*s.Stages[i].Slots())
	}
	return width
}

// Serial reports whether at most one task runs at a time: each stage has one task, and names the
// stage before it in After.
func (s *JobSpec) Serial() bool {
	for i := range s.Stages {
		if s.Stages[i].TaskCount() > 1 || i > 0 && !slices.Contains(s.Stages[i].After, s.Stages[i-1].Name) {
			return false
		}
	}
	return true
}

// Alone returns the width of a job that needs slots on one node only: it has no gangs, and a task
// has more than one slot. It returns 0 for all other jobs.
func (s *JobSpec) Alone() int {
	if width := s.Width(); width > 1 && !slices.ContainsFunc(s.Stages, func(s Stage) bool { return s.Gang }) {
		return width
	}
	return 0
}
