package demo

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

func goodReport() *Report {
	at := func(seconds float64) messages.Time { return messages.Time(1e12 + seconds*1e6) }
	h, bank, charged := twoUsers()
	detail := job.JobDetail{
		JobSummary: job.JobSummary{Job: 1, Name: "users", Account: "alice", State: job.Completed, Tasks: 22,
			Budget: 12 * credit, Charged: 10 * credit, Submitted: at(0), Started: at(0.25), Ended: at(4.5)},
		Shares: []job.ClassShare{{Class: "cpu", Allocated: 0.5, Received: 0.625, Over: messages.Duration(time.Second)}},
	}
	return &Report{Site: "west", Nodes: 4, Tasks: 22, Took: messages.Duration(5 * time.Second),
		Jobs:    []JobLine{newJobLine(&detail, Result{Right: true, Rows: 9})},
		Answers: Answers{Right: 1, Of: 1, Findings: []string{"A finding."}},
		Books:   addUp(bank, h.statements(), charged)}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*Report)
		says  string // empty means the report must say that all is well
	}{
		{"all is well", func(*Report) {}, ""},
		{"a job that failed", func(r *Report) { r.Jobs[0].State, r.Jobs[0].Reason = job.Failed, "TaskFailed" }, "job 1 (users of alice) is Failed: TaskFailed"},
		{"a wrong result", func(r *Report) { r.Jobs[0].Result = Result{Problem: "line 2"} }, "the result of job 1 (users of alice) is wrong: line 2"},
		{"books that do not balance", func(r *Report) { r.Books.Balanced, r.Books.Problem = false, "a credit is missing" }, "the books do not balance: a credit is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := goodReport()
			c.spoil(r)
			r.judge()
			if r.Reason != c.says || r.OK != (c.says == "") {
				t.Errorf("OK %v because %q, want %q", r.OK, r.Reason, c.says)
			}
		})
	}
}

func TestReportSays(t *testing.T) {
	r := goodReport()
	r.judge()
	var out bytes.Buffer
	r.write(&out, terminal.Style{})
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, words := range []string{
		"1 job, 22 tasks, on 4 nodes of site west, in 5.0s",
		"1 users alice Completed 22 250ms 4.5s 62% / 50% 12 10 right",
		"alice 100 10 10 0 0 90", "bob 50 20 5 15 0 45", "$site 0 0 0 0 15 15",
		"A finding.", "✓ 1 of 1 results", "✓ recomputed from 10 entries of all statements: 150 issued, 150 in accounts",
		"the books balance.",
	} {
		if !strings.Contains(text, words) {
			t.Errorf("%q is missing from:\n%s", words, out.String())
		}
	}
	r = goodReport()
	r.Jobs[0].Result = Result{Problem: "line 2"}
	r.judge()
	out.Reset()
	r.write(&out, terminal.Style{})
	if strings.Contains(out.String(), "Every job finished") || !strings.Contains(out.String(), "wrong") {
		t.Errorf("a wrong result is not told:\n%s", out.String())
	}
}

func TestFindings(t *testing.T) {
	results := map[string]string{
		"users-1-128.txt":   "user jobs processor_hours\n3 9 75\n4 1 25\n",
		"hours-1-128.txt":   "hour jobs processor_hours wait_median wait_p90\n9 10 1 30 40\n13 2048 1 282 900\n",
		"waits-1-128.txt":   "widest jobs mean median p90 p99 max\n1 5 1 22 1 1 1\n128 5 1 7200 1 1 1\n",
		"predict-1-128.txt": "user jobs request_permille last_two_permille\n3 200 300 500\n4 200 500 300\n5 200 1 2\n",
	}
	want := []string{
		"2 users ran 100 processor-hours; one of them 75% of it.",
		"Most jobs came between 13:00 and 14:00: 2,048 of them; half of these waited longer than 4m42s.",
		"A job of one processor waited 22s in the median, one of 65 to 128 processors 2h00m.",
		"For 2 of the 3 busiest users the last two runtimes predicted the next runtime better than the request did.",
	}
	if got := findings(results); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("findings are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := findings(nil); got != nil {
		t.Errorf("of nothing it finds %q", got)
	}
}
