package slurm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
)

// Exit codes of PBS's qstat.
const (
	hasFinished = 35
	unknownJob  = 153
)

// pbsLetters translates the letters of states in Grid Engine (pending, running, suspended, ended, all) into letters of PBS.
var pbsLetters = map[string]string{"p": "QH", "r": "RBE", "s": "S", "z": "F", "a": "QHRBES"}

// qstat lists jobs as PBS does: the jobs that have not ended, or the jobs with the numbers that qsub printed. With -j it
// describes jobs as Grid Engine does.
func qstat(ctx context.Context, c *call, args []string) error {
	f := c.flags
	users := f.StringSliceP("user", "u", nil, "")
	full := f.BoolP("full", "f", false, "")
	ended := f.BoolP("history", "x", false, "")
	numbers := f.StringP("job", "j", "", "")
	running := f.BoolP("running", "r", false, "")
	waiting := f.BoolP("idle", "i", false, "")
	c.ignore(nil, []string{"all/a", "array/t", "wide/w", "nodes/n", "one/1", "site/s"})
	for i, word := range args {
		if value, attached := strings.CutPrefix(word, "-s"); attached { // -sp means -s p
			if _, is := statesOfGridEngine(value); is {
				args = slices.Replace(slices.Clone(args), i, i+1, "-s", value)
				break
			}
		}
	}
	words, done, err := c.parse(args)
	if done || err != nil {
		return err
	}
	letters := ""
	if *running {
		letters = pbsLetters["r"] + pbsLetters["s"]
	}
	if *waiting {
		letters += pbsLetters["p"]
	}
	if f.Changed("site") { // in Grid Engine, -s is a list of letters for states; in PBS it has no value
		words = slices.DeleteFunc(words, func(word string) bool {
			some, is := statesOfGridEngine(word)
			letters += some
			return is
		})
	}
	*ended = *ended || strings.Contains(letters, "F")
	if *numbers != "" {
		words = append(words, *numbers)
	}
	q := query{active: len(words) == 0 && !*ended, details: true, everybody: true}
	*users = slices.DeleteFunc(*users, func(user string) bool { return user == "*" }) // "*" means all users
	if len(words) > 0 {
		if q.targets, err = targets(jobsOfQsub(words)...); err != nil {
			return err
		}
		q.elements = slices.ContainsFunc(q.targets, func(t target) bool { return t.indices != nil })
	}
	s, err := c.dial()
	if err != nil {
		return err
	}
	defer s.Bus.Close()
	q.users = usersOf(*users, s.Account)
	rows, err := q.list(ctx, s)
	if err != nil {
		return err
	}
	code := 0
	for _, t := range q.targets {
		only, name := query{targets: []target{t}}, t.job.String()
		if t.indices != nil {
			name += fmt.Sprint(t.indices) // for example 7[3]
		}
		i := slices.IndexFunc(rows, func(r row) bool { return only.has(&r) })
		switch {
		case *numbers != "" && (i < 0 || rows[i].state.ended()):
			c.Tell(fmt.Sprintf("Following jobs do not exist: \n%s", name))
			code = 1
		case i < 0:
			c.Tell(fmt.Sprintf("qstat: Unknown Job Id %s.%s", name, s.Site))
			code = unknownJob
		case rows[i].state.ended() && !*ended:
			c.Tell(fmt.Sprintf("qstat: %s.%s Job has finished, use -x to obtain historical job information", name, s.Site))
			code = hasFinished
		}
	}
	rows = slices.DeleteFunc(rows, func(r row) bool {
		return r.state.ended() && !*ended || letters != "" && !strings.Contains(letters, r.letterOfPBS())
	})
	switch {
	case *numbers != "":
		for i := range rows {
			r := &rows[i]
			fmt.Fprintf(c.Out, "%s\njob_number:                 %v\nowner:                      %s\njob_name:                   %s\n", strings.Repeat("=", 62), r.Job, r.Account, oneLine(r.Name))
			if r.index != "" {
				fmt.Fprintf(c.Out, "job-array tasks:            %s\n", strings.Trim(r.index, "[]"))
			}
		}
	case *full:
		for i := range rows {
			c.fullOfPBS(s, &rows[i])
		}
	case len(rows) > 0:
		c.tableOfPBS(s, rows, f.Changed("user") || *running || *waiting)
	}
	if code != 0 {
		return status(code)
	}
	return nil
}

// fullOfPBS describes one job as qstat -f does.
func (c *call) fullOfPBS(s *cli.Session, r *row) {
	now := messages.TimeOf(c.Now())
	lines := [][2]string{{"Job_Name", r.Name}, {"Job_Owner", r.Account}, {"resources_used.walltime", longClock(r.elapsed(now))}, {"job_state", r.letterOfPBS()}, {"queue", r.Market},
		{"server", s.Site}, {"ctime", c.date(r.Submitted)}, {"Resource_List.ncpus", fmt.Sprint(r.cpus())}, {"Resource_List.nodect", fmt.Sprint(r.nodes())}}
	if r.began != 0 {
		lines = append(lines, [2]string{"stime", c.date(r.began)})
	}
	if r.state.ended() {
		lines = append(lines, [2]string{"Exit_status", fmt.Sprint(max(r.ExitCode, 0))})
	}
	fmt.Fprintf(c.Out, "Job Id: %s\n", r.numberOfPBS(s.Site))
	for _, l := range lines {
		fmt.Fprintf(c.Out, "    %s = %s\n", l[0], oneLine(l[1]))
	}
	fmt.Fprintln(c.Out)
}

// tableOfPBS lists jobs as qstat does, and with wide as qstat -u, -r and -i do.
func (c *call) tableOfPBS(s *cli.Session, rows []row, wide bool) {
	now := messages.TimeOf(c.Now())
	if wide {
		fmt.Fprintf(c.Out, "\n%s:\n%60s %6s %6s   %4s\n%-15s %-8s %-8s %-10s %6s %3s %3s %6s %5s %s %5s\n", s.Site, "", "Req'd", "Req'd", "Elap",
			"Job ID", "Username", "Queue", "Jobname", "SessID", "NDS", "TSK", "Memory", "Time", "S", "Time")
		fmt.Fprintln(c.Out, "--------------- -------- -------- ---------- ------ --- --- ------ ----- - -----")
	} else {
		fmt.Fprintf(c.Out, "%-17s %-16s %-16s %8s %s %-5s\n%s %s %s  %s - -----\n", "Job id", "Name", "User", "Time Use", "S", "Queue",
			strings.Repeat("-", 17), strings.Repeat("-", 16), strings.Repeat("-", 16), strings.Repeat("-", 7))
	}
	for i := range rows {
		r := &rows[i]
		id, name, spent := r.numberOfPBS(s.Site), oneLine(r.Name), r.elapsed(now)
		if !wide {
			fmt.Fprintf(c.Out, "%-17s %-16s %-16s %8s %s %s\n", id, name, r.Account, longClock(spent), r.letterOfPBS(), r.Market)
			continue
		}
		limit, memory := "--", "--"
		if len(r.detail.Spec.Stages) > 0 && r.detail.Spec.Stages[0].TimeLimit > 0 {
			limit = hours(r.detail.Spec.Stages[0].TimeLimit)
		}
		if mebibytes, _ := r.memoryAndGPUs(); mebibytes > 0 {
			memory = fmt.Sprintf("%dmb", mebibytes)
		}
		fmt.Fprintf(c.Out, "%-15s %-8s %-8s %-10s %6s %3d %3d %6s %5s %s %5s\n", id, r.Account, r.Market, name, "--", r.nodes(), r.cpus(), memory, limit, r.letterOfPBS(), hours(spent))
	}
}

// hours writes a duration as qstat does: 26:05 is 26 hours and 5 minutes.
func hours(d messages.Duration) string {
	minutes := int64(d.Std() / time.Minute)
	return fmt.Sprintf("%02d:%02d", minutes/60, minutes%60)
}

func (c *call) date(t messages.Time) string { return t.Std().In(c.Zone).Format(time.ANSIC) }

// numberOfPBS returns the number of the job as qsub prints it.
func (r *row) numberOfPBS(site messages.Name) string {
	switch {
	case r.index != "":
		return fmt.Sprintf("%v[%s].%s", r.array, strings.Trim(r.index, "[]"), site)
	case r.Array != nil:
		return r.Job.String() + "[]." + site
	}
	return r.Job.String() + "." + site
}

// letterOfPBS returns the state of a job in PBS. B is an array that has begun.
func (r *row) letterOfPBS() string {
	switch {
	case r.state.ended():
		return "F"
	case r.Array != nil && r.index == "" && r.state == running:
		return "B"
	case r.why == "JobHeldUser":
		return "H"
	}
	return map[state]string{pending: "Q", running: "R", suspended: "S", completing: "E"}[r.state]
}

// jobsOfQsub returns numbers of jobs, as Slurm writes them, for what qsub and qstat print: 7 for "7.site" and "7[].site",
// 7_[3] for "7[3].site". Grid Engine writes elements of an array as "7.3" or "7.0-3:2"; the result is 7_[3] or 7_[0-3:2].
// So what follows the dot must be indices if it begins with a digit. Words that begin with no digit stay as they are.
func jobsOfQsub(words []string) (numbers []string) {
	digit := func(text string) bool { return text != "" && '0' <= text[0] && text[0] <= '9' }
	for _, word := range words {
		if !digit(word) {
			numbers = append(numbers, word)
			continue
		}
		for _, one := range fields(word) {
			number, rest, _ := strings.Cut(one, ".")
			number, element, _ := strings.Cut(strings.TrimSuffix(number, "]"), "[")
			if element == "" && digit(rest) {
				element, _, _ = strings.Cut(rest, ".")
			}
			if element != "" {
				number += "_[" + element + "]"
			}
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// statesOfGridEngine translates the value of Grid Engine's option -s, such as "pr", into letters of PBS. It returns
// false if the word is no such value.
func statesOfGridEngine(word string) (letters string, is bool) {
	states, kind, held := strings.Cut(word, "h") // hu, ho and hs are kinds of the state h
	if word == "" || len(kind) > 1 {
		return "", false
	}
	if held {
		letters = "H"
	}
	for _, one := range states {
		if pbsLetters[string(one)] == "" {
			return "", false
		}
		letters += pbsLetters[string(one)]
	}
	return letters, true
}
