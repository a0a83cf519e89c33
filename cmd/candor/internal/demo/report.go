package demo

import (
	"fmt"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Report has the results of the demo, as candor demo --json prints them.
type Report struct {
	OK      bool              `json:"ok"`
	Reason  string            `json:"reason,omitempty"` // the reason, if not OK
	Site    messages.Name     `json:"site"`
	Nodes   int               `json:"nodes"`
	Tasks   int               `json:"tasks"`
	Took    messages.Duration `json:"took"` // from the first submission to the end of the last job
	Jobs    []JobLine         `json:"jobs"` // in the order of submission
	Answers Answers           `json:"answers"`
	Books   *Books            `json:"books"`
}

type JobLine struct {
	Job      messages.JobID    `json:"job"`
	Name     string            `json:"name"`
	Account  messages.Name     `json:"account"`
	State    job.State         `json:"state"`
	Reason   string            `json:"reason"`
	Tasks    int               `json:"tasks"`
	Wait     messages.Duration `json:"wait"`     // from submission to the first task
	Response messages.Duration `json:"response"` // from submission to the end
	Shares   []job.ClassShare  `json:"shares"`
	Budget   messages.Credits  `json:"budget"`
	Charge   messages.Credits  `json:"charge"`
	Result   Result            `json:"result"`
}

// Result compares the result of a job with the known answer.
type Result struct {
	Right   bool   `json:"right"`
	Rows    int    `json:"rows"`              // lines of the result, with its header
	Problem string `json:"problem,omitempty"` // first difference from the known answer
}

// Answers counts the jobs whose result is right. Findings says in a few sentences what the jobs found out.
type Answers struct {
	Right    int      `json:"right"`
	Of       int      `json:"of"`
	Findings []string `json:"findings"`
}

func newJobLine(d *job.JobDetail, result Result) JobLine {
	line := JobLine{Job: d.Job, Name: d.Name, Account: d.Account, State: d.State, Reason: d.Reason, Tasks: d.Tasks,
		Shares: d.Shares, Budget: d.Budget, Charge: d.Charged, Result: result}
	if d.Started != 0 {
		line.Wait = d.Started.Sub(d.Submitted)
	}
	if d.Ended != 0 {
		line.Response = d.Ended.Sub(d.Submitted)
	}
	return line
}

// judge decides whether all results of the demo are as expected. If not, it writes a sentence with the reason into the
// report.
func (r *Report) judge() {
	r.Reason = r.problem()
	r.OK = r.Reason == ""
}

func (r *Report) problem() string {
	for _, j := range r.Jobs {
		if j.State != job.Completed {
			return fmt.Sprintf("job %v (%s of %s) is %v: %s", j.Job, j.Name, j.Account, j.State, j.Reason)
		}
	}
	for _, j := range r.Jobs {
		if !j.Result.Right {
			return fmt.Sprintf("the result of job %v (%s of %s) is wrong: %s", j.Job, j.Name, j.Account, j.Result.Problem)
		}
	}
	if !r.Books.Balanced {
		return "the books do not balance: " + r.Books.Problem
	}
	return ""
}
