package accounts

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
)

// jobFacts is what a statement shows about a job in addition to what the bank knows.
type jobFacts struct {
	name      string
	market    messages.Name
	mechanism string
}

// factsWithin is how long a statement waits for the auctioneer: the statement is useful without its
// part.
const factsWithin = 2 * time.Second

// jobsOf asks the auctioneer about the jobs of a statement. If it does not answer, or no longer
// knows a job, the result lacks that job.
func jobsOf(ctx context.Context, s *cli.Session, r messages.StatementReply) map[messages.JobID]jobFacts {
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
	q := messages.JobsRequest{All: r.Account != s.Account, Before: high + 1}
	eachJob(ctx, s, &q, low, func(j *messages.JobSummary) { facts[j.Job] = factsOf(j, mechanisms) })
	return facts
}

// quickly returns a session in which the auctioneer has factsWithin for an answer.
func quickly(s *cli.Session) *cli.Session {
	quick := *s
	quick.Timeout = min(s.Timeout, factsWithin)
	return &quick
}

// eachJob reads the auctioneer's jobs, the newest first, down to a number or for maxFactPages.
// q.All is false then if the caller may see only its own. It returns whether these are all jobs.
func eachJob(ctx context.Context, s *cli.Session, q *messages.JobsRequest, low messages.JobID, do func(*messages.JobSummary)) (all bool) {
	q.Limit = cli.MaxPage
	for range maxFactPages {
		reply, err := cli.Call[messages.JobsReply](ctx, s, messages.Auctioneer, messages.VerbJobs, *q)
		if err != nil && q.All { // only operators may see all; ask for the caller's own
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

// factsOf leaves out the mechanism of a market of another site.
func factsOf(j *messages.JobSummary, mechanisms map[messages.Name]string) jobFacts {
	if j.Away != nil {
		return jobFacts{name: j.Name, market: j.Market + " at " + j.Away.Site}
	}
	return jobFacts{j.Name, j.Market, mechanisms[j.Market]}
}

// maxFactPages bounds what one statement asks of the auctioneer.
const maxFactPages = 10

// bounds returns the smallest and the largest number of a job.
func bounds(entries []messages.Entry) (low, high messages.JobID) {
	for _, e := range entries {
		if e.Job != 0 && (low == 0 || e.Job < low) {
			low = e.Job
		}
		high = max(high, e.Job)
	}
	return low, high
}

// inWords says why an entry is there; its job's number is in the column next to it. A payment to another
// site that was given no reason ends in the colon before the reason.
func inWords(e messages.Entry, facts map[messages.JobID]jobFacts) string {
	job := facts[e.Job].words()
	if e.Kind == messages.Hold && e.Reason != "" {
		job = "" // the reason names the job and its market
	}
	parts := []string{happened(e), job, strings.TrimRight(e.Reason, ": ")}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}

// words calls a job by its name and the market it bid in, "" if they are not known.
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

// happened returns a phrase for what an entry did.
func happened(e messages.Entry) string {
	switch e.Kind {
	case messages.Hold:
		return held(e)
	case messages.Post:
		return ofHold(e)
	case messages.Void:
		if e.By == "" {
			return fmt.Sprintf("%v came back", -e.Hold)
		}
		return fmt.Sprintf("nothing charged, %v came back", -e.Hold)
	}
	return moved(e)
}

func held(e messages.Entry) string {
	text := "set aside"
	if e.Member != "" {
		text += " for " + e.Member
	}
	return text
}

// ofHold compares the credits of a hold with the credits that were charged.
func ofHold(e messages.Entry) string {
	if e.Change >= 0 && e.Hold == 0 {
		return "received"
	}
	back := -e.Hold + e.Change
	switch {
	case back == 0:
		return fmt.Sprintf("all %v charged", -e.Change)
	case e.Change == 0:
		return fmt.Sprintf("nothing charged, %v came back", back)
	}
	return fmt.Sprintf("%v of %v charged, %v came back", -e.Change, -e.Hold, back)
}

// moved returns about credits that moved at once; the beginning of the transfer's identifier says
// on what ground.
func moved(e messages.Entry) string {
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
