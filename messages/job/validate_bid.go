package job

import (
	"slices"

	"github.com/candor-grid/candor/messages"
)

// MaxDependencies bounds the number of jobs that a job can wait for.
const MaxDependencies = 1000

// MaxBegin is the latest begin time of a job: the end of the year 2199.
const MaxBegin = messages.Time(7_258_118_400_000_000)

func (s *JobSpec) validateBid() error {
	for _, f := range [...]struct {
		field string
		value messages.Credits
	}{{"rate", s.Rate}, {"value", s.Value}, {"delay", s.Delay}} {
		if f.value < 0 {
			return messages.Errorf(messages.Invalid, "%s: %v must not be negative", f.field, f.value)
		}
		if f.value > messages.MaxCredits {
			return messages.Errorf(messages.TooLarge, "%s: %v is above the limit of %v credits", f.field, f.value, messages.MaxCredits)
		}
	}
	switch {
	case s.Length < 0:
		return messages.Errorf(messages.Invalid, "length: %v must not be negative; it is the run time that the job declares", s.Length)
	case s.Deadline < 0:
		return messages.Errorf(messages.Invalid, "deadline: %v is before 1970; give a time in the future", s.Deadline)
	case s.Begin < 0:
		return messages.Errorf(messages.Invalid, "begin: %v is before 1970; give a time in the future", s.Begin)
	case s.Begin > MaxBegin:
		return messages.Errorf(messages.Invalid, "begin: %v is too far away", s.Begin)
	case s.Begin != 0 && s.Deadline != 0 && s.Begin >= s.Deadline:
		return messages.Errorf(messages.Invalid, "begin: %v is not before the deadline, %v", s.Begin, s.Deadline)
	case s.Begin != 0 && s.Contract != "":
		return messages.Errorf(messages.Invalid, "begin: contract %s fixes the completion time of the job; leave out the field begin or the contract", messages.Clipped(s.Contract))
	}
	if s.Hold && s.Contract != "" {
		return messages.Errorf(messages.Invalid, "hold: contract %s fixes the completion time of the job; leave out the field hold or the contract", messages.Clipped(s.Contract))
	}
	if err := messages.CheckLine("contract", s.Contract, messages.MaxKey); err != nil || s.Valuation == nil {
		return err
	}
	return messages.InField("valuation", s.Valuation.Validate())
}

func (s *JobSpec) validateDependencies() error {
	if n := len(s.Predecessors()); n > MaxDependencies {
		return messages.Errorf(messages.TooLarge, "after_jobs: %d jobs are more than the limit of %d", n, MaxDependencies)
	}
	for _, f := range [...]struct {
		field string
		jobs  []messages.JobID
	}{{"after_jobs", s.AfterJobs}, {"after_ok", s.AfterOK}, {"after_failed", s.AfterFailed}, {"after_start", s.AfterStart}} {
		for i, id := range f.jobs {
			if id == 0 {
				return messages.Errorf(messages.Invalid, "%s[%d]: 0 is not a job number", f.field, i)
			}
			if slices.Contains(f.jobs[:i], id) {
				return messages.Errorf(messages.Invalid, "%s[%d]: job %d is given twice", f.field, i, id)
			}
		}
	}
	return s.validateConditions()
}

// maxStartDelay bounds the StartDelay of a job: a year.
const maxStartDelay = messages.Duration(365 * 24 * 3600_000_000_000)

func (s *JobSpec) validateConditions() error {
	all := s.Awaited()
	slices.Sort(all)
	switch {
	case s.AfterAny && len(all) == 0:
		return messages.Errorf(messages.Invalid, "after_any: the job waits for no jobs; give a list of jobs, such as after_ok, or leave after_any out")
	case s.AfterAny && len(slices.Compact(all)) < len(s.Awaited()):
		return messages.Errorf(messages.Invalid, "after_any: a job is in two lists, such as after_ok and after_failed; name each job in one list only")
	case s.AfterAny && s.AfterEach != 0:
		return messages.Errorf(messages.Invalid, "after_any: cannot go together with after_each, which makes each task wait by itself; leave one of the two out")
	case s.StartDelay < 0 || s.StartDelay > maxStartDelay:
		return messages.Errorf(messages.Invalid, "start_delay: %v is not between 0 and %v", s.StartDelay, maxStartDelay)
	case s.StartDelay > 0 && len(s.AfterStart) == 0:
		return messages.Errorf(messages.Invalid, "start_delay: the delay begins when other jobs start; name these jobs in after_start")
	case s.StartDelay > 0 && s.Contract != "":
		return messages.Errorf(messages.Invalid, "start_delay: contract %s fixes the completion time of the job; leave out the field start_delay or the contract", messages.Clipped(s.Contract))
	case s.AfterEach != 0 && (len(s.Stages) != 1 || s.Stages[0].Array == nil || s.Stages[0].Gang):
		return messages.Errorf(messages.Invalid, "after_each: the job must be an array with one stage, and no gang; use after_ok")
	}
	return nil
}

// Awaited returns the jobs that the whole job waits for: those in AfterJobs, AfterOK, AfterFailed and AfterStart. A job
// in two of these fields is returned twice.
func (s *JobSpec) Awaited() []messages.JobID {
	return slices.Concat(s.AfterJobs, s.AfterOK, s.AfterFailed, s.AfterStart)
}

// Predecessors returns the jobs that the job, or its single tasks, wait for. A job in two lists is returned twice.
func (s *JobSpec) Predecessors() []messages.JobID {
	all := s.Awaited()
	if s.AfterEach != 0 {
		all = append(all, s.AfterEach)
	}
	return all
}

// WaitsForEnd reports whether the job waits until another job has ended, and not only until it has started.
func (s *JobSpec) WaitsForEnd(id messages.JobID) bool {
	return slices.Contains(s.AfterJobs, id) || slices.Contains(s.AfterOK, id) || slices.Contains(s.AfterFailed, id)
}

// Width returns how many slots the job needs at the same time. This is the number for its widest task or gang. For a
// heterogeneous job, whose stages run together, it is the largest number that the job needs of one class.
func (s *JobSpec) Width() int {
	width, together := 1, map[messages.Name]int(nil)
	if s.Together {
		together = map[messages.Name]int{}
	}
	for i := range s.Stages {
		tasks := 1
		if s.Stages[i].Gang {
			tasks = s.Stages[i].TaskCount()
		}
		slots := tasks * s.Stages[i].Slots()
		if s.Together {
			together[s.Stages[i].Class] += slots
			slots = together[s.Stages[i].Class]
		}
		width = max(width, slots)
	}
	return width
}

// Serial reports whether at most one task runs at a time: each stage has one task, and waits for the stage before it.
func (s *JobSpec) Serial() bool {
	for i := range s.Stages {
		if s.Stages[i].TaskCount() > 1 || i > 0 && !slices.Contains(s.Stages[i].After, s.Stages[i-1].Name) {
			return false
		}
	}
	return true
}

// Alone returns the width of a job without gangs whose tasks each need several slots of one node. It returns 0 for all
// other jobs.
func (s *JobSpec) Alone() int {
	if width := s.Width(); width > 1 && !slices.ContainsFunc(s.Stages, func(s Stage) bool { return s.Gang }) {
		return width
	}
	return 0
}
