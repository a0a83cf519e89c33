package accounts

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

// jobFacts has what a statement shows about a job in addition to the bank's entries. The bank does not know these
// facts.
type jobFacts struct {
	name      string
	market    messages.Name
	mechanism string
}

// factsWithin is how long a statement waits for the auctioneer's answer about the jobs. The statement is also useful
// without this answer.
const factsWithin = 2 * time.Second

// jobsOf asks the auctioneer about the jobs of a statement. If the auctioneer does not answer, the result is empty.
func jobsOf(ctx context.Context, s *cli.Session, r money.StatementReply) map[messages.JobID]jobFacts {
	facts := map[messages.JobID]jobFacts{}
	low, high := bounds(r.Entries)
	if high == 0 {
		return facts
	}
	s = quickly(s)
	mechanisms := map[messages.Name]string{}
	for _, m := range cli.SiteMarkets(ctx, s) {
		mechanisms[m.Market.Name] = m.Market.Mechanism
	}
	q := job.JobsRequest{All: r.Account != s.Account, Before: high + 1}
	eachJob(ctx, s, &q, low, func(j *job.JobSummary) { facts[j.Job] = factsOf(j, mechanisms) })
	return facts
}

func quickly(s *cli.Session) *cli.Session {
	quick := *s
	quick.Timeout = min(s.Timeout, factsWithin)
	return &quick
}

// eachJob calls `do` for the auctioneer's jobs, the newest first. It stops after the job with the number `low`, or
// after maxFactPages pages. If the caller may not see the jobs of all users, eachJob reads the caller's jobs. The
// result `all` is true if it has read all jobs.
func eachJob(ctx context.Context, s *cli.Session, q *job.JobsRequest, low messages.JobID, do func(*job.JobSummary)) (all bool) {
	q.Limit = cli.MaxPage
	for range maxFactPages {
		reply, err := cli.Call[job.JobsReply](ctx, s, messages.Auctioneer, messages.VerbJobs, *q)
		if err != nil && q.All { // only operators may see all jobs; ask for the caller's own jobs
			q.All = false
			continue
		}
		all = err == nil && !reply.More
		for i := range reply.Jobs {
			do(&reply.Jobs[i])
		}
		if err != nil || !reply.More || len(reply.Jobs) == 0 || q.Before != 0 && q.Before <= low {
			break
		}
		q.Before = reply.Jobs[len(reply.Jobs)-1].Job
	}
	return all
}

// factsOf returns the facts about a job. If the market is at another site, the mechanism is missing.
func factsOf(j *job.JobSummary, mechanisms map[messages.Name]string) jobFacts {
	if j.Away != nil {
		return jobFacts{name: j.Name, market: j.Market + " at " + j.Away.Site}
	}
	return jobFacts{j.Name, j.Market, mechanisms[j.Market]}
}

// maxFactPages is the largest number of pages of jobs that one statement reads.
const maxFactPages = 10

func bounds(entries []money.Entry) (low, high messages.JobID) {
	for _, e := range entries {
		if e.Job != 0 && (low == 0 || e.Job < low) {
			low = e.Job
		}
		high = max(high, e.Job)
	}
	return low, high
}

// inWords says why an entry exists. It leaves out the job's number, because the next column shows the number. The
// bank's text for a payment without a reason ends in a colon, which inWords removes.
func inWords(e money.Entry, facts map[messages.JobID]jobFacts) string {
	job := facts[e.Job].words()
	if e.Kind == money.Hold && e.Reason != "" {
		job = "" // the reason names the job and its market
	}
	parts := []string{happened(e), job, strings.TrimRight(e.Reason, ": ")}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}

func (f jobFacts) words() string {
	if f.market == "" {
		return f.name
	}
	text := strings.TrimPrefix(f.name+" on "+f.market, " ")
	if f.mechanism != "" {
		text += " (" + f.mechanism + ")"
	}
	return text
}

// happened returns a phrase that says what an entry did.
func happened(e money.Entry) string {
	switch e.Kind {
	case money.Hold:
		return held(e)
	case money.Post:
		return ofHold(e)
	case money.Void:
		if e.By == "" {
			return fmt.Sprintf("%v given back", -e.Hold)
		}
		return fmt.Sprintf("nothing charged, %v given back", -e.Hold)
	}
	return moved(e)
}

func held(e money.Entry) string {
	text := "set aside"
	if e.Member != "" {
		text += " for " + e.Member
	}
	return text
}

// ofHold says how many credits of a hold were charged, and how many were given back.
func ofHold(e money.Entry) string {
	if e.Change >= 0 && e.Hold == 0 {
		return "received"
	}
	back := -e.Hold + e.Change
	switch {
	case back == 0:
		return fmt.Sprintf("all %v charged", -e.Change)
	case e.Change == 0:
		return fmt.Sprintf("nothing charged, %v given back", back)
	}
	return fmt.Sprintf("%v of %v charged, %v given back", -e.Change, -e.Hold, back)
}

// moved returns a phrase that says why credits moved without a hold. It finds the reason at the beginning of the
// transfer's identifier.
func moved(e money.Entry) string {
	ground, _, _ := strings.Cut(strings.TrimPrefix(e.Transfer, "$"), "/")
	if !strings.HasPrefix(e.Transfer, "$") {
		ground = ""
	}
	switch ground {
	case "grant":
		return "granted by " + e.By
	case "withdraw":
		return "withdrawn by " + e.By
	case "correct":
		return "correction by " + e.By + " of " + e.Pending
	case "return":
		return "unspent of grant " + strings.TrimPrefix(e.Pending, "$grant/")
	case "pay":
		if e.Change < 0 {
			return "transferred by " + e.By
		}
		return "received from " + e.By
	}
	return ""
}
