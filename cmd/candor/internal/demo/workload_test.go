package demo

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/candor-grid/candor/messages"
)

// Three people have different budgets and needs. They submit 20 to 30 jobs within 10 to 15 seconds. Some jobs have a
// stage of map tasks, followed by a stage of reduce tasks.
func TestWorkloadIsWhatWasPromised(t *testing.T) {
	w := loadWorkload(t)
	if n := len(w.Submissions); len(w.Accounts) != 3 || n < 20 || n > 30 {
		t.Errorf("%d accounts submit %d jobs", len(w.Accounts), n)
	}
	if last := w.Submissions[len(w.Submissions)-1].Due(); last < 10*time.Second || last > 15*time.Second {
		t.Errorf("the last submission is at %v", last)
	}
	narrow, wide, spent := map[messages.Name]int{}, map[messages.Name]int{}, map[messages.Credits]bool{}
	for _, s := range w.Submissions {
		for _, stage := range s.spec.Stages {
			switch stage.CPUs {
			case 1:
				narrow[s.Account] += stage.TaskCount()
			case 2:
				wide[s.Account] += stage.TaskCount()
			default:
				t.Errorf("%s: a task of %d processors", s.Job, stage.CPUs)
			}
		}
		spent[s.Budget] = true
		if after := s.spec.Stages[1].After; len(after) != 1 || after[0] != "map" {
			t.Errorf("%s: its second stage comes after %v", s.Job, after)
		}
	}
	ratio := func(account messages.Name) float64 { return float64(narrow[account]) / float64(wide[account]) }
	if ratio("alice") <= ratio("bob") || ratio("bob") <= ratio("carol") || len(spent) < 3 {
		t.Errorf("tasks of one processor: %v, of two: %v; budgets: %v", narrow, wide, spent)
	}
}

func TestSpec(t *testing.T) {
	s := loadWorkload(t).Submissions[8]
	spec := s.Spec("/dir", "/out")
	if s.Widths == anyWidth || spec.Name != s.Job+" "+s.Widths || spec.Dir != "/dir" || spec.Budget != s.Budget {
		t.Errorf("submission %+v becomes %+v", s, spec)
	}
	got := map[string]string{}
	for i, v := range spec.Env {
		got[v.Name] = v.Value
		if i > 0 && spec.Env[i-1].Name >= v.Name {
			t.Errorf("environment is not in order: %v", spec.Env)
		}
	}
	if got["OUT"] != "/out" || got["WIDTHS"] != s.Widths {
		t.Errorf("environment is %v", got)
	}
}

const oneJob = "name: a\nbudget: 2\ntasks: 3\nclass: map\ncommand: [\"true\"]\n"

func TestLoadWorkloadRefuses(t *testing.T) {
	for _, c := range []struct{ name, workload, says string }{
		{"no such job", "submissions: [{account: a, job: z}]", "submissions[0]"},
		{"unknown field", "submissions: [{account: a, job: a, when: 3}]", "when"},
		{"not in order", "accounts: [{name: a, grant: 9}]\nsubmissions: [{at: 2, account: a, job: a}, {at: 1, account: a, job: a}]", "submissions[1]: at"},
		{"no account", "submissions: [{account: a, job: a}]", "not among the accounts"},
		{"too poor", "accounts: [{name: a, grant: 1}]\nsubmissions: [{account: a, job: a}]", "grant is 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := fstest.MapFS{"workload.yaml": {Data: []byte(c.workload)}, "jobs/a.yaml": {Data: []byte(oneJob)}}
			_, err := LoadWorkload(files)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one with %q", err, c.says)
			}
		})
	}
}
