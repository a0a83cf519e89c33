package demo

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/yamlfile"
)

// Workload says who submits what, and when.
type Workload struct {
	Accounts    []Funding    `yaml:"accounts"`
	Submissions []Submission `yaml:"submissions"` // in the order of At
}

// Funding is an account with its initial credits.
type Funding struct {
	Name  messages.Name    `yaml:"name"`
	Grant messages.Credits `yaml:"grant"`
}

// Submission is one job of the workload.
type Submission struct {
	At      float64       `yaml:"at"` // seconds after the first submission
	Account messages.Name `yaml:"account"`
	Job     string        `yaml:"job"` // name of the job file under jobs/
	// Budget replaces the budget of the file if it is not 0.
	Budget messages.Credits `yaml:"budget"`
	Widths string           `yaml:"widths"` // "least-most" processors of the jobs to look at

	spec job.JobSpec // content of the job file
}

// anyWidth replaces an empty Widths of a submission. It is the range of the numbers of processors of all jobs in the
// log.
const anyWidth = "1-128"

// LoadWorkload reads workload.yaml and the job files that it names.
func LoadWorkload(example fs.FS) (*Workload, error) {
	text, err := fs.ReadFile(example, "workload.yaml")
	if err != nil {
		return nil, err
	}
	var w Workload
	if err := yamlfile.Strict(text, &w); err != nil {
		return nil, fmt.Errorf("workload.yaml: %w", err)
	}
	for i := range w.Submissions {
		if err := w.Submissions[i].load(example); err != nil {
			return nil, fmt.Errorf("workload.yaml: submissions[%d]: %w", i, err)
		}
	}
	return &w, w.check()
}

func (s *Submission) load(example fs.FS) error {
	if s.Widths == "" {
		s.Widths = anyWidth
	}
	text, err := fs.ReadFile(example, path.Join("jobs", s.Job+".yaml"))
	if err != nil {
		return err
	}
	job, err := jobfile.ParseDocument(text)
	if err != nil {
		return fmt.Errorf("jobs/%s.yaml: %w", s.Job, err)
	}
	s.spec = job.Spec
	if s.Budget == 0 {
		s.Budget = job.Spec.Budget
	}
	return nil
}

func (w *Workload) check() error {
	need := map[messages.Name]messages.Credits{}
	for i, s := range w.Submissions {
		if i > 0 && s.At < w.Submissions[i-1].At {
			return fmt.Errorf("workload.yaml: submissions[%d]: at: is before the time of the submission above", i)
		}
		need[s.Account] += s.Budget
	}
	for _, a := range w.Accounts {
		if need[a.Name] > a.Grant {
			return fmt.Errorf("workload.yaml: %s: the jobs of this account may cost %s together, but its grant is %v", a.Name, need[a.Name].Words(), a.Grant)
		}
		delete(need, a.Name)
	}
	for _, s := range w.Submissions {
		if _, unfunded := need[s.Account]; unfunded {
			return fmt.Errorf("workload.yaml: %s: submits a job, but is not among the accounts", s.Account)
		}
	}
	return nil
}

// Due returns how long after the first submission this submission is sent.
func (s *Submission) Due() time.Duration {
	return time.Duration(s.At * float64(time.Second))
}

// Title returns the name of the job. If the study uses only jobs of some widths, Title adds these widths.
func (s *Submission) Title() string {
	if s.Widths == anyWidth {
		return s.Job
	}
	return s.Job + " " + s.Widths
}

// Answer returns the name of the file with the known answer.
func (s *Submission) Answer() string { return s.Job + "-" + s.Widths + ".txt" }

// Spec returns the job to submit. Its tasks run in dir and write their results to out.
func (s *Submission) Spec(dir, out string) job.JobSpec {
	spec := s.spec
	spec.Name, spec.Budget, spec.Dir = s.Title(), s.Budget, dir
	spec.Env = slices.Concat(spec.Env, job.Env{{Name: "OUT", Value: out}, {Name: "WIDTHS", Value: s.Widths}})
	slices.SortFunc(spec.Env, func(a, b job.Variable) int { return strings.Compare(a.Name, b.Name) })
	return spec
}

func outDir(dir string, i int, s *Submission) string {
	return filepath.Join(dir, "results", fmt.Sprintf("%02d-%s-%s", i+1, s.Job, s.Widths))
}

func (w *Workload) tasks() (n int) {
	for _, s := range w.Submissions {
		for _, stage := range s.spec.Stages {
			n += max(stage.Tasks, 1)
		}
	}
	return n
}
