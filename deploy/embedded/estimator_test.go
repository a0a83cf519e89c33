package embedded

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// learned waits until the estimator has learned from a number of runs.
func (u user) learned(r market.UtilityRequest, runs int) market.UtilityReply {
	u.Helper()
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for ctx := within(u.T); ; {
		got := request[market.UtilityReply](u, messages.Estimator, messages.VerbUtility, r)
		if got.Runs >= runs {
			return got
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			u.Fatalf("the estimator knows of %d runs of %d", got.Runs, runs)
		}
	}
}

// TestBudgetAlone runs some jobs, from which the estimator learns a utility. Later jobs that declare only a budget must
// get this utility, also after a restart.
func TestBudgetAlone(t *testing.T) {
	t.Parallel()
	config := small(t.TempDir())
	config.Profiles = []jobmsg.Profile{{Name: "due", Class: jobmsg.Hard, Bounds: []jobmsg.ParameterBounds{{Parameter: "max", High: 10}, {Parameter: "deadline", High: 60}}}}
	s := start(t, config)
	alice := connect(t, s, "alice")
	kind := market.UtilityRequest{Name: "count", Market: "main", Classes: []messages.Name{"map", "reduce"}}
	for k := range 3 {
		alice.final(alice.submit(fmt.Sprint("run", k), twoStages(t.TempDir(), messages.Credit)))
	}
	before := alice.learned(kind, 3)
	explained := func() bool { // false if the estimator was too slow for this job
		for k := range 20 {
			job := alice.submit(fmt.Sprint("budget", k), twoStages(t.TempDir(), messages.Credit))
			why := request[market.WhyReply](alice, messages.Auctioneer, messages.VerbWhy, jobmsg.JobRequest{Job: job})
			alice.final(job)
			if strings.Contains(why.Message, "the utility function of the job is assumed (estimated from ") {
				return true
			}
		}
		return false
	}
	if !explained() {
		t.Error("no job was given the utility that was learned")
	}
	estimate := request[market.EstimateReply](alice, messages.Estimator, market.VerbEstimate, market.EstimateRequest{Spec: twoStages("", messages.Credit)})
	if estimate.Declared || estimate.Completion.Median <= 0 || len(estimate.Stages) != 2 || estimate.Stages[0].Runs == 0 {
		t.Errorf("estimate %+v", estimate)
	}
	if classes := request[market.ClassesReply](alice, messages.Estimator, market.VerbClasses, messages.Empty{}); len(classes.Classes) != 1 {
		t.Errorf("classes %+v", classes)
	}
	closeSite(t, s)

	s = start(t, config)
	defer closeSite(t, s)
	alice = connect(t, s, "alice")
	if at := request[market.UtilityReply](alice, messages.Estimator, messages.VerbUtility, kind); at.Runs <= before.Runs {
		t.Errorf("after the restart it knows of %d runs, before of more than %d", at.Runs, before.Runs)
	}
}
