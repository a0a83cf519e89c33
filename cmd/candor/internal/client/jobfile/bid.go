package jobfile

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// due is a deadline: an instant, or a span from the submission.
type due struct {
	at messages.Time
	in span
}

type numbers []messages.JobID

// valuation is a job.Valuation as a YAML document writes it.
type valuation struct {
	Class          text    `yaml:"class"`
	Max            number  `yaml:"max"`
	Mu             number  `yaml:"mu"`
	Delta          number  `yaml:"delta"`
	Epsilon        number  `yaml:"eps"`
	Deadline       number  `yaml:"deadline"`
	Workload       number  `yaml:"workload"`
	SecondsPerUnit number  `yaml:"seconds_per_unit"`
	Points         []point `yaml:"points"`
}

type point struct {
	At   number `yaml:"at"`
	Part number `yaml:"part"`
}

func (v *valuation) spec() *job.Valuation {
	if v == nil {
		return nil
	}
	out := &job.Valuation{Class: job.ValuationClass(v.Class), Max: float64(v.Max), Mu: float64(v.Mu), Delta: float64(v.Delta),
		Epsilon: float64(v.Epsilon), Deadline: float64(v.Deadline), Workload: float64(v.Workload), SecondsPerUnit: float64(v.SecondsPerUnit)}
	for _, p := range v.Points {
		out.Points = append(out.Points, job.ValuationPoint{At: float64(p.At), Part: float64(p.Part)})
	}
	return out
}

// parseDue reads "2026-01-31T12:00:00Z", or "+1h30m", which counts from the submission.
func parseDue(s string) (d due, err error) {
	if rest, relative := strings.CutPrefix(s, "+"); relative {
		v, err := messages.ParseDuration(rest)
		if err != nil || v <= 0 {
			return d, fmt.Errorf("%q is not a span after the submission: write it like +1h30m", s)
		}
		return due{in: span(v)}, nil
	}
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return d, fmt.Errorf("%q is not a time: write it like 2026-01-31T12:00:00Z, or +1h30m from the submission on", s)
	}
	return due{at: messages.TimeOf(at)}, nil
}

func parseJobs(items []string) ([]messages.JobID, error) {
	out := make([]messages.JobID, len(items))
	for i, item := range items {
		id, err := strconv.ParseUint(item, 10, 64)
		if err != nil || id == 0 {
			return nil, fmt.Errorf("%q is not the number of a job", item)
		}
		out[i] = messages.JobID(id)
	}
	return out, nil
}

func (o *Options) bidOptions() {
	o.option("rate", "", "the bid in `credits` for a slot-hour, as in 36/h, or for a slot-second, as in 0.01; for markets with rates (see \"candor markets\")",
		func(job *Job, text string) (err error) {
			job.Spec.Rate, err = messages.ParsePrice(text)
			return err
		})
	o.option("value", "", "the worth of the job's completion, in `credits`, for markets that use a value",
		credits(func(spec *job.JobSpec) *messages.Credits { return &spec.Value }))
	o.option("delay", "", "the cost of waiting, in `credits` for each second, for markets that use a delay",
		credits(func(spec *job.JobSpec) *messages.Credits { return &spec.Delay }))
	o.option("length", "", "declared run `time` of the job, written as for --time", func(job *Job, text string) error {
		length, err := ParseTime(text)
		job.Spec.Length = cmp.Or(length, job.Spec.Length)
		return err
	})
	o.option("deadline", "", "`instant` by which the job must have completed: 2026-01-31T12:00:00Z, or +1h30m", setDeadline)
	o.option("contract", "", "accept the contract of this `ID`, from \"candor quote\"", textOf(func(j *Job) *string { return &j.Spec.Contract }))
	after := func(name, usage string, jobs func(*job.JobSpec) *[]messages.JobID) {
		o.option(name, "", usage, func(job *Job, text string) (err error) {
			items := strings.Split(text, ",")
			for i, item := range items {
				if array, _, element := strings.Cut(item, "_"); element {
					items[i] = array
					job.Warnings = append(job.Warnings, fmt.Sprintf("%s is an element of array job %s: the new job waits for the whole array", item, array))
				}
			}
			*jobs(&job.Spec), err = parseJobs(items)
			return err
		})
	}
	after("after", "start when the jobs of these `numbers` have ended: 7 or 7,8", func(s *job.JobSpec) *[]messages.JobID { return &s.AfterJobs })
	after("after-ok", "start when the jobs of these `numbers` have completed; end if one of them does not complete", func(s *job.JobSpec) *[]messages.JobID { return &s.AfterOK })
	after("after-failed", "start when the jobs of these `numbers` have ended without completing; end if one of them completes", func(s *job.JobSpec) *[]messages.JobID { return &s.AfterFailed })
	after("after-start", "start when each job of these `numbers` has started a task or has ended", func(s *job.JobSpec) *[]messages.JobID { return &s.AfterStart })
	o.rules["after-any"] = func(job *Job, text string) (err error) {
		job.Spec.AfterAny, err = strconv.ParseBool(text)
		return err
	}
	o.Flags.BoolFunc("after-any", "start when one of the conditions of the --after options above is met (default: when all are)", o.check("after-any"))
	o.option("start-delay", "", "`time` to wait after the jobs of --after-start have started, written as for --time", func(job *Job, text string) error {
		delay, err := ParseTime(text)
		job.Spec.StartDelay = cmp.Or(delay, job.Spec.StartDelay)
		return err
	})
	o.option("after-each", "", "start each task of an array when the task with the same index has completed in the array job `number`", func(job *Job, text string) error {
		jobs, err := parseJobs([]string{text})
		if err == nil {
			job.Spec.AfterEach = jobs[0]
		}
		return err
	})
	o.hidden("slurm-dependency", func(job *Job, _ string) error {
		s := &job.Spec
		s.AfterJobs, s.AfterOK, s.AfterFailed, s.AfterStart, s.AfterEach = nil, nil, nil, nil, 0
		s.AfterAny, s.StartDelay, job.Names.Singleton = false, 0, false
		return nil
	})
	o.option("begin", "", "start no task before this `time`: now+1hour, 16:00, tomorrow, 2026-01-31T12:00", setBegin)
	o.rules["gang"] = func(job *Job, text string) error {
		gang, err := strconv.ParseBool(text)
		job.Spec.Stages[0].Gang = gang || job.Spec.Stages[0].Gang
		return err
	}
	o.Flags.BoolFunc("gang", "start all tasks at the same time, each on its own slot, or none of them", o.check("gang"))
}

func setDeadline(job *Job, text string) error {
	deadline, err := parseDue(text)
	job.Spec.Deadline, job.DueIn = deadline.at, messages.Duration(deadline.in)
	return err
}

func credits(field func(*job.JobSpec) *messages.Credits) rule {
	return func(job *Job, text string) (err error) {
		*field(&job.Spec), err = messages.ParseCredits(text)
		return err
	}
}
