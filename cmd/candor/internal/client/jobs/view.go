package jobs

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

func writeCancelled(p *cli.Page, r job.CancelReply) {
	if r.Away != nil && r.Away.Trouble != "" {
		p.Printf("Job %v, which was %v, will be cancelled when site %s answers. The site does not answer now: %s\n", r.Job, r.State, r.Away.Site, terminal.Safe(r.Away.Trouble))
		return
	}
	p.Printf("Cancelled job %v, which was %v\n", r.Job, r.State)
}

func writeEnded(p *cli.Page, j job.JobDetail) {
	p.Printf("Job %v %s in %s: %d of %s done, %v of %s charged to %s\n", j.Job, p.State(j.State),
		p.Between(j.Submitted, j.Ended), j.Done, terminal.Plural(j.Tasks, "task"), j.Charged, cli.Credits(j.Budget), j.Payer)
	if j.State == job.Failed && j.Failed > 0 && j.Tasks > 1 {
		p.Printf("%s of %s failed; `candor rerun %v` runs the failed tasks again\n", terminal.Count(j.Failed), terminal.Plural(j.Tasks, "task"), j.Job)
	}
	switch said := notState(j.State, j.Reason); {
	case j.Message == "":
	case said == "": // the task ended well after failed attempts
		p.Printf("Note: %s\n", p.Said(j.Message))
	default:
		p.Printf("%s: %s\n", said, p.Said(j.Message))
	}
	if j.State == job.Failed {
		p.Printf("See `candor logs %v`, `candor tasks %v` and `candor why %v`\n", j.Job, j.Job, j.Job)
	}
}

func writeJobs(p *cli.Page, r job.JobsReply) {
	if len(r.Jobs) == 0 {
		p.Printf("No jobs. Submit a job with candor submit.\n")
		return
	}
	spare := "MARKET|SUBMITTED|WAITED|RUNNING|CHARGED|BUDGET|RAN|ACCOUNT"
	if !slices.ContainsFunc(r.Jobs, func(j job.JobSummary) bool { return j.Account != r.Jobs[0].Account || j.Payer != r.Jobs[0].Payer }) {
		spare = "ACCOUNT|" + spare
	}
	t := terminal.NewTable(">JOB|~NAME|~ACCOUNT|~MARKET|STATE|>DONE|>RUNNING|>SUSPENDED|>BUDGET|>CHARGED|SUBMITTED|>WAITED|>RAN|~16REASON").Spare(spare)
	for _, j := range r.Jobs {
		t.Row(j.Job.String(), terminal.Safe(j.Name), paidBy(ownerOf(j), j.Payer), where(j),
			p.State(j.State), fmt.Sprintf("%d/%d", j.Done, j.Tasks), cli.Number(j.Running-j.Suspended), cli.Number(j.Suspended), j.Budget.String(), charged(j),
			p.At(j.Submitted), waited(p, j), p.Between(j.Started, j.Ended), reason(j))
	}
	p.Table(t, "")
	if r.More {
		more := "There are more jobs: use a larger --limit"
		if r.Next != "" {
			more += ", or the next page with --page " + terminal.Safe(r.Next)
		}
		p.Printf("%s\n", p.Dim(more))
	}
}

// writeGaps tells the user which ended jobs may be missing in the printed list: jobs whose records are damaged, and
// jobs that the site did not keep.
func writeGaps(p *cli.Page, r job.JobsReply) {
	if r.Unreadable > 0 {
		p.Printf("Not listed: %s of ended jobs on the site's disk\n", terminal.Plural(r.Unreadable, "damaged record"))
	}
	if r.Complete != 0 && !r.More {
		p.Printf("%s\n", p.Dim("Jobs that ended by "+p.At(r.Complete)+" may be missing: the site does not keep all ended jobs"))
	}
}

// ownerOf returns the account of a job. A job from another site also has a number at that site, and the function adds
// this number: "alice@west/17".
func ownerOf(j job.JobSummary) string {
	if j.Visit == nil {
		return j.Account
	}
	return j.Account + "/" + j.Visit.Job.String()
}

// This function returns the market of a job. If the market is at another site, it adds the site: "east/main".
func where(j job.JobSummary) string {
	if j.Away == nil {
		return j.Market
	}
	return j.Away.Site + "/" + j.Market
}

// away returns the state of a job that runs at another site, or "" for any other job.
func away(p *cli.Page, j job.JobSummary) string {
	a := j.Away
	switch {
	case a == nil:
		return ""
	case a.Trouble != "":
		return fmt.Sprintf("%s, and that site does not answer (%s); %s", a.Site, terminal.Safe(a.Trouble), heardOf(p, a))
	}
	return fmt.Sprintf("%s (%s; %s)", a.Site, a.Phase, heardOf(p, a))
}

func heardOf(p *cli.Page, a *job.Away) string {
	if a.Known == 0 {
		return "no news of the job came yet"
	}
	return "last heard of " + p.Between(a.Known, p.Now) + " ago"
}

func paidBy(account, payer messages.Name) string {
	if payer == "" || payer == account || strings.HasPrefix(account, payer+"/") {
		return account
	}
	return account + " (" + payer + ")"
}

func charged(j job.JobSummary) string {
	if !j.State.Final() {
		return ""
	}
	return j.Charged.String()
}

// waited returns how long a job waited: from its submission until its first task was claimed. If no task was claimed,
// the job waited until it ended.
func waited(p *cli.Page, j job.JobSummary) string {
	if j.Started == 0 {
		return p.Between(j.Submitted, j.Ended)
	}
	return p.Between(j.Submitted, j.Started)
}

// reason returns why a job has not completed, or "" if the state of the job already says why.
func reason(j job.JobSummary) string {
	switch {
	case j.Reason == j.State.String(): // the reason only repeats the state
		return ""
	case j.State == job.Failed && j.Failed > 0 && j.Tasks > 1 && exitCode(j) != "":
		return fmt.Sprintf("%s (%d failed, exit %s)", terminal.Safe(j.Reason), j.Failed, exitCode(j))
	case j.State == job.Failed && j.Failed > 0 && j.Tasks > 1:
		return fmt.Sprintf("%s (%d failed)", terminal.Safe(j.Reason), j.Failed)
	case j.State == job.Failed && j.Reason == "TaskFailed" && exitCode(j) != "":
		return fmt.Sprintf("%s (exit %s)", terminal.Safe(j.Reason), exitCode(j))
	}
	return notState(j.State, j.Reason)
}

func writeJob(p *cli.Page, j job.JobDetail) {
	head, name := p.Bold("Job "+j.Job.String()), terminal.Safe(j.Name)
	if beside := terminal.Width(head+p.State(j.State)) + 4; p.Layout.Width > beside {
		name = terminal.Clip(name, max(p.Layout.Width-beside, 1))
	}
	p.Printf("%s  %s  %s\n", head, name, p.State(j.State))
	exit := ""
	if j.State == job.Failed {
		exit = exitCode(j.JobSummary)
	}
	p.Fields(
		"Account", ownerOf(j.JobSummary), "Paid by", j.Payer, "Market", where(j.JobSummary), "At site", away(p, j.JobSummary), "Because", because(j.JobSummary),
		"Reason", p.Said(reason(j.JobSummary)), whyOrNote(j.State), p.Said(j.Message), "Exit code", exit,
		"Budget", cli.Credits(j.Budget), "Charged", charge(j.JobSummary),
		"Utility", Utility(j.Spec.Utility),
		"Directory", terminal.Safe(j.Spec.Dir),
		"Rerun of", rerunOf(j),
		"Results", results(p, j),
		"Labels", terminal.Safe(j.Spec.Labels.String()), "Comment", terminal.Safe(j.Spec.Comment),
		"Submitted", p.At(j.Submitted),
		"Begins", begins(p, j),
		"After", awaited(j.Spec),
		"Waited", waited(p, j.JobSummary),
		"Ran", p.Between(j.Started, j.Ended),
		"Response", response(p, j.JobSummary))
	writeNotices(p, j.Notices)
	writeStages(p, j)
	writeShares(p, j.State, j.Shares)
}

func whyOrNote(s job.State) string {
	if s <= job.Running || s == job.Completed {
		return "Note"
	}
	return "Why"
}

// results says when a user can read the output files and logs. It returns "" if the site does not hide them until the
// job is settled.
func results(p *cli.Page, j job.JobDetail) string {
	if !j.Kept {
		return ""
	}
	return fmt.Sprintf("can be read when the job is settled: at the latest at its deadline, %s, or at its end if the job ends later", p.At(j.Spec.Deadline))
}

// A job may run the tasks of an earlier job again. rerunOf returns a text with the number of this earlier job at the
// owner's site, or "" if there is none.
func rerunOf(j job.JobDetail) string {
	switch {
	case j.Spec.RerunOf == 0:
		return ""
	case j.Visit != nil:
		return "job " + j.Spec.RerunOf.String() + " of site " + j.Visit.Home
	}
	return "job " + j.Spec.RerunOf.String()
}

func writeNotices(p *cli.Page, list []job.NoticeStatus) {
	for _, n := range list {
		what := "not sent yet to"
		switch {
		case n.Refused != "":
			what = "not sent to"
		case n.Sent != 0:
			what = "sent " + p.At(n.Sent) + " to"
		}
		p.Printf("  Notification of %s: %s %s", n.Event, what, terminal.Safe(n.To))
		if n.Refused != "" {
			p.Printf(": %s", terminal.Safe(n.Refused))
		}
		p.Printf("\n")
	}
}

func exitCode(j job.JobSummary) string {
	if j.ExitCode <= 0 {
		return ""
	}
	return strconv.Itoa(int(j.ExitCode))
}

func notState(s job.State, reason string) string {
	if reason == s.String() {
		return ""
	}
	return terminal.Safe(reason)
}

// begins returns a text with the earliest time at which tasks of a job may start, or "" if the job has no such time.
func begins(p *cli.Page, j job.JobDetail) string {
	if j.Spec.Begin == 0 {
		return ""
	}
	return "not before " + p.At(j.Spec.Begin)
}

// awaited returns a text about the job's dependencies. It says which other jobs must end, complete, fail or start
// before a task of this job may start.
func awaited(s job.JobSpec) string {
	var parts []string
	if len(s.AfterJobs) > 0 {
		parts = append(parts, "the end of "+numbers(s.AfterJobs))
	}
	if len(s.AfterOK) > 0 {
		parts = append(parts, "the completion of "+numbers(s.AfterOK))
	}
	if len(s.AfterFailed) > 0 {
		parts = append(parts, "the failure of "+numbers(s.AfterFailed))
	}
	if len(s.AfterStart) > 0 {
		text := "the start of " + numbers(s.AfterStart)
		if s.StartDelay > 0 {
			text = fmt.Sprintf("%v after %s", s.StartDelay, text)
		}
		parts = append(parts, text)
	}
	if s.AfterEach != 0 {
		parts = append(parts, fmt.Sprintf("the completion of each task of job %v, for the task of the same index", s.AfterEach))
	}
	if s.AfterAny {
		return "one of: " + strings.Join(parts, ", ")
	}
	return strings.Join(parts, ", ")
}

func numbers(jobs []messages.JobID) string {
	text := "job "
	if len(jobs) > 1 {
		text = "jobs "
	}
	for i, job := range jobs {
		if i > 0 {
			text += ", "
		}
		text += job.String()
	}
	return text
}

// because says why a job is at another site. It returns "" if the job's owner chose the site.
func because(j job.JobSummary) string {
	if j.Away == nil {
		return ""
	}
	return terminal.Safe(j.Away.Chosen)
}

// charge returns a text with the cost of a job, and the part of its budget that was given back.
func charge(j job.JobSummary) string {
	if !j.State.Final() {
		return "not yet"
	}
	return fmt.Sprintf("%s (%v given back)", cli.Credits(j.Charged), j.Budget-j.Charged)
}

func response(p *cli.Page, j job.JobSummary) string {
	if j.Ended == 0 {
		return ""
	}
	return p.Between(j.Submitted, j.Ended)
}

// Utility writes a utility function as a sum of its parts. A nil u means that the site estimates the utility.
func Utility(u *job.Utility) string {
	if u == nil {
		return "estimated"
	}
	var terms []string
	for _, w := range u.Weights {
		term := cli.Price(w.Weight) + "·" + w.Class
		if u.Form == job.Log {
			term = cli.Price(w.Weight) + "·ln(" + w.Class + ")"
		}
		terms = append(terms, term)
	}
	text := strings.Join(terms, " + ")
	if u.Minimum != 0 {
		text += ", at least " + cli.Price(u.Minimum)
	}
	return text
}

func writeStages(p *cli.Page, j job.JobDetail) {
	p.Title("Stages")
	t := terminal.NewTable("~STAGE|~CLASS|~AFTER|>TASKS|>READY|>RUNNING|>SUSPENDED|>DONE|>FAILED|>CANCELLED|>RETRIED|STARTED|>RAN|>LIMIT|>SLOT TIME|>CPU|>MEMORY").Spare("STARTED|SLOT TIME|LIMIT|AFTER|CPU|RETRIED|MEMORY")
	for i, s := range j.Stages {
		after, limit := "", ""
		if i < len(j.Spec.Stages) {
			after, limit = strings.Join(j.Spec.Stages[i].After, ", "), span(j.Spec.Stages[i].TimeLimit)
		}
		t.Row(s.Name, s.Class, after, terminal.Count(s.Tasks), cli.Number(s.Pending), cli.Number(s.Running-s.Suspended), cli.Number(s.Suspended), terminal.Count(s.Done), cli.Number(s.Failed), cli.Number(s.Cancelled), cli.Number(s.Retried),
			p.At(s.Started), p.Between(s.Started, cmp.Or(s.Ended, j.Ended)), limit, span(s.SlotTime), span(s.CPU), memory(s.MaxRSS))
	}
	p.Table(t, "  ")
	for _, s := range j.Stages {
		if s.Cut > 0 {
			p.Printf("  %s\n", p.Yellow(fmt.Sprintf("Stage %s: %s of the output of %s are lost, because the site limits the size of an output.",
				s.Name, terminal.Plural(int(s.Lost), "byte"), terminal.Plural(s.Cut, "attempt"))))
		}
	}
}

// span writes a duration, or "" for 0.
func span(d messages.Duration) string {
	if d == 0 {
		return ""
	}
	return terminal.Span(d.Std())
}

// memory writes a size in mebibytes.
func memory(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf("%d MiB", (bytes+1<<20-1)>>20)
}

// An average share is shown only if it is the average over at least this time. The average over a shorter time says
// nothing.
const leastOver = messages.Duration(time.Second)

// writeShares writes a line for each class in which the job has or had a share. An ended job has no share now.
func writeShares(p *cli.Page, state job.State, shares []job.ClassShare) {
	t, some := terminal.NewTable("~CLASS|>NOW|>ALLOCATED|>RECEIVED|>OVER"), false
	for _, s := range shares {
		row := []string{s.Class, "", "", "", ""}
		lives := state <= job.Running
		if lives {
			row[1] = terminal.Percent(s.Now)
		}
		if s.Over >= leastOver {
			row = append(row[:2], terminal.Percent(s.Allocated), terminal.Percent(s.Received), terminal.Span(s.Over.Std()))
		}
		if s.Over >= leastOver || lives && s.Now > 0 {
			t.Row(row...)
			some = true
		}
	}
	if some {
		p.Title("Shares")
		p.Table(t, "  ")
	}
}

func stands(s job.State) string {
	switch s {
	case job.Completed, job.Failed:
		return "has " + strings.ToLower(s.String())
	case job.Cancelled, job.Discarded:
		return "was " + strings.ToLower(s.String())
	}
	return "is " + strings.ToLower(s.String())
}

func writeWhy(p *cli.Page, r market.WhyReply) {
	p.Printf("%s %s", p.Bold("Job "+r.Job.String()), strings.Replace(p.State(r.State), r.State.String(), stands(r.State), 1))
	if r.Reason != r.State.String() {
		p.Printf(": %s", p.Bold(p.Said(r.Reason)))
	}
	p.Printf("\n")
	if r.Message != "" {
		p.Printf("  %s\n", p.Said(r.Message))
	}
	writeShares(p, r.State, r.Shares)
	if len(r.Prices) > 0 {
		p.Title("Prices")
		p.Prices(r.Prices)
	}
	if len(r.Change) > 0 {
		p.Title("What would change this")
		for _, sentence := range r.Change {
			p.Printf("  - %s\n", p.Said(sentence))
		}
	}
}

func writeWhatIf(p *cli.Page, r market.WhatIfReply) {
	if r.Now == nil || r.Then == nil {
		p.Printf("%s: %s\n", p.Bold("Job "+r.Job.String()), p.Said(r.Message))
		return
	}
	then, now := cli.Credits(r.Then.Bid), r.Now.Bid.String()
	if r.Term == market.TermRate { // bids are for a slot-second
		then, now = messages.Price(r.Then.Bid).Words(), messages.Price(r.Now.Bid).Hour()
	}
	p.Printf("%s if its %s were %s (now %s)\n", p.Bold("Job "+r.Job.String()), r.Term, then, now)
	p.Printf("  %s: %s\n", p.Bold(p.Said(r.Then.Reason)), p.Said(r.Then.Message))
	t := terminal.NewTable("~CLASS|>SHARE|>SHARE NOW|>SLOTS|>SLOTS NOW|>PRICE (CREDITS)|>PRICE NOW")
	for i, c := range r.Then.Classes {
		now := r.Now.Classes[i]
		t.Row(c.Class, terminal.Percent(c.Share), terminal.Percent(now.Share), cli.Price(c.Slots), cli.Price(now.Slots), cli.SlotPrice(c.Price, c.PerSecond), cli.SlotPrice(now.Price, now.PerSecond))
	}
	p.Printf("\n")
	p.Table(t, "  ")
}

// progressLines describes a job that has not ended: one line for the job and one for each stage.
func progressLines(p *cli.Page, j job.JobDetail) []string {
	why := ""
	if j.State == job.Waiting {
		why = p.Dim(notState(j.State, j.Reason))
	}
	lines := []string{fmt.Sprintf("Job %v  %s  %s  %s", j.Job, p.State(j.State), p.Between(j.Submitted, j.Ended), why)}
	width := 0
	for _, s := range j.Stages {
		width = max(width, len(s.Name))
	}
	for _, s := range j.Stages {
		running := ""
		if s.Running > s.Suspended {
			running = p.Cyan(fmt.Sprintf("%d running", s.Running-s.Suspended))
		}
		if s.Suspended > 0 {
			running += fmt.Sprintf("  %d suspended", s.Suspended)
		}
		if s.Failed > 0 {
			running += p.Red(fmt.Sprintf(" %d failed", s.Failed))
		}
		done := float64(s.Done) / float64(max(s.Tasks, 1))
		lines = append(lines, fmt.Sprintf("  %-*s  %s  %d/%d  %s", width, s.Name, terminal.Bar(done, 24), s.Done, s.Tasks, running))
	}
	if j.Message != "" && j.State <= job.Running {
		lines = append(lines, "  "+p.Dim(p.Said(j.Message)))
	}
	for i := range lines {
		lines[i] = terminal.Clip(strings.TrimRight(lines[i], " "), p.Columns)
	}
	return lines
}
