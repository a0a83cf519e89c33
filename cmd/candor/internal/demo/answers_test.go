package demo

import (
	"bufio"
	"compress/gzip"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/candor-grid/candor/deploy/examples"
)

// These tests compute the known answers a second time. They read the text of the log themselves, and do not run the
// stages of the workload. The results must equal the committed answers byte for byte.

type logJob struct {
	number, submit, wait, run, procs, asked, user, program, queue int64
}

const (
	logStart = 893466664 // field UnixStartTime in the log's header
	logZone  = -28800    // field TimeZone in the log's header
)

// readLog reads the jobs that ran and used between least and most processors.
func readLog(t *testing.T, least, most int64) []logJob {
	t.Helper()
	file, err := examples.TraceAnalysis().Open("sdsc-sp2-1999.swf.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var jobs []logJob
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), ";") {
			continue
		}
		j := parseLogJob(t, lines.Text())
		if j.run >= 0 && j.procs >= least && j.procs <= most {
			jobs = append(jobs, j)
		}
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
	return jobs
}

func parseLogJob(t *testing.T, line string) logJob {
	t.Helper()
	fields := strings.Fields(line)
	if len(fields) != 18 {
		t.Fatalf("%d fields in job line %q", len(fields), line)
	}
	number := func(field int) int64 {
		n, err := strconv.ParseInt(fields[field-1], 10, 64)
		if err != nil {
			t.Fatalf("field %d of %q: %v", field, line, err)
		}
		return n
	}
	return logJob{number: number(1), submit: number(2), wait: number(3), run: number(4), procs: number(5),
		asked: number(9), user: number(12), program: number(14), queue: number(15)}
}

// The numbers of jobs in the log and in the workload must agree.
func TestTraceIsAnExcerptOfRealJobs(t *testing.T) {
	jobs := readLog(t, -1, 128)
	if len(jobs) < 15_000 {
		t.Errorf("%d jobs, want at least 15,000", len(jobs))
	}
	for i := 1; i < len(jobs); i++ {
		if jobs[i].number <= jobs[i-1].number || jobs[i].submit < jobs[i-1].submit {
			t.Fatalf("job %d after job %d: not in order", jobs[i].number, jobs[i-1].number)
		}
	}
}

// update makes the test write the answers again, after an analysis was changed:
//
//	go test ./cmd/candor/internal/demo -run TestAnswers -update
var update = flag.Bool("update", false, "write the answers instead of comparing them")

func TestAnswers(t *testing.T) {
	for _, s := range loadWorkload(t).Submissions {
		t.Run(s.Answer(), func(t *testing.T) {
			least, most := widthsOf(&s)
			compute := analyses[s.Job]
			if compute == nil {
				t.Fatalf("no second computation of %q", s.Job)
			}
			got := compute(readLog(t, least, most))
			if *update {
				writeAnswer(t, s.Answer(), got)
				return
			}
			want, err := fs.ReadFile(examples.TraceAnalysis(), "answers/"+s.Answer())
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the committed answer differs:\n%s", firstDifference(got, string(want)))
			}
		})
	}
}

func writeAnswer(t *testing.T, name, answer string) {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "..", "deploy", "examples", "trace-analysis", "answers")
	if err := os.WriteFile(filepath.Join(dir, name), []byte(answer), 0o644); err != nil {
		t.Fatal(err)
	}
}

func loadWorkload(t *testing.T) *Workload {
	t.Helper()
	w, err := LoadWorkload(examples.TraceAnalysis())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

var analyses = map[string]func([]logJob) string{
	"users": answerUsers, "hours": answerHours, "load": answerLoad, "weeks": answerWeeks,
	"runtimes": answerRuntimes, "waits": answerWaits, "slowdown": answerSlowdown, "estimates": answerEstimates,
	"programs": answerPrograms, "predict": answerPredict, "bootstrap": answerBootstrap,
}

func groupBy(jobs []logJob, key func(logJob) int64) ([]int64, map[int64][]logJob) {
	groups := map[int64][]logJob{}
	for _, j := range jobs {
		groups[key(j)] = append(groups[key(j)], j)
	}
	return slices.Sorted(maps.Keys(groups)), groups
}

func values(jobs []logJob, f func(logJob) int64) []int64 {
	v := make([]int64, len(jobs))
	for i, j := range jobs {
		v[i] = f(j)
	}
	slices.Sort(v)
	return v
}

// nearestRank returns a quantile of v. It is the smallest value x in v such that at least permille/1000 of the values
// are at most x. The values are in ascending order.
func nearestRank(v []int64, permille int) int64 {
	for i, x := range v {
		if (i+1)*1000 >= permille*len(v) {
			return x
		}
	}
	return v[len(v)-1]
}

func total(v []int64) (sum int64) {
	for _, x := range v {
		sum += x
	}
	return sum
}

// half returns a/b, rounded half up.
func half(a, b int64) int64 { return (2*a + b) / (2 * b) }

func area(j logJob) int64    { return j.procs * j.run }
func waitOf(j logJob) int64  { return j.wait }
func runOf(j logJob) int64   { return j.run }
func askedOf(j logJob) int64 { return j.asked }

func answerUsers(jobs []logJob) string {
	out := "user jobs processor_hours\n"
	users, of := groupBy(jobs, func(j logJob) int64 { return j.user })
	for _, u := range users {
		out += fmt.Sprintln(u, len(of[u]), half(total(values(of[u], area)), 3600))
	}
	return out
}

func answerHours(jobs []logJob) string {
	out := "hour jobs processor_hours wait_median wait_p90\n"
	hours, of := groupBy(jobs, func(j logJob) int64 { return (logStart + logZone + j.submit) % 86400 / 3600 })
	for _, h := range hours {
		waits := values(of[h], waitOf)
		out += fmt.Sprintln(h, len(waits), half(total(values(of[h], area)), 3600), nearestRank(waits, 500), nearestRank(waits, 900))
	}
	return out
}

// answerLoad counts the busy processors of the machine in each second. For each week, it returns the mean part of the
// processors that is busy, and the busiest hour.
func answerLoad(jobs []logJob) string {
	var end int64
	for _, j := range jobs {
		end = max(end, j.submit+j.wait+j.run)
	}
	change := make([]int64, end+1)
	for _, j := range jobs {
		change[j.submit+j.wait] += j.procs
		change[j.submit+j.wait+j.run] -= j.procs
	}
	hours := make([]int64, end/3600+1)
	var now int64
	for second := range change {
		now += change[second]
		hours[second/3600] += now
	}
	out := "week busy_permille peak_hour peak_processors_tenths\n"
	for week := range (len(hours) + 167) / 168 {
		of := hours[week*168 : min((week+1)*168, len(hours))]
		if total(of) == 0 {
			continue
		}
		peak := slices.Max(of)
		out += fmt.Sprintln(week, half(total(of)*1000, 128*604800), week*168+slices.Index(of, peak), half(peak*10, 3600))
	}
	return out
}

func answerWeeks(jobs []logJob) string {
	out := "week users jobs most_by_one_user\n"
	weeks, of := groupBy(jobs, func(j logJob) int64 { return j.submit / 604800 })
	for _, w := range weeks {
		users, by := groupBy(of[w], func(j logJob) int64 { return j.user })
		most := 0
		for _, u := range users {
			most = max(most, len(by[u]))
		}
		out += fmt.Sprintln(w, len(users), len(of[w]), most)
	}
	return out
}

// widthsOf returns the smallest and the largest number of processors from the text Widths of a submission. It returns
// zeroes if there is none.
func widthsOf(s *Submission) (least, most int64) {
	from, to, _ := strings.Cut(s.Widths, "-")
	least, _ = strconv.ParseInt(from, 10, 64)
	most, _ = strconv.ParseInt(to, 10, 64)
	return least, most
}
