package trial

import (
	"context"
	"time"

	"github.com/candor-grid/candor/cmd/lab/internal/netlab/load"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// phases has the time before a cut, and the length of the cut. Every third job of a client is for another site. Both
// times are multiples of the time in which a client submits three jobs. So in each phase a third of the jobs is for
// other sites.
type phases struct{ before, cut time.Duration }

const (
	cutEvery = 500 * time.Millisecond
	settling = 3 * time.Second // time before measuring, because the first submissions meet idle sites
)

var (
	long  = phases{before: 30 * time.Second, cut: 2 * time.Minute}
	short = phases{before: 9 * time.Second, cut: 12 * time.Second}
)

// These limits must hold during and after a cut.
const (
	leastThroughput = 0.95             // throughput of the site that is cut off, relative to the time before
	agreeWithin     = 30 * time.Second // longest time after the cut until all waiting work is done and the books agree
)

// cut disconnects one of three sites while users of all sites submit. The site must work as before, lose nothing, and
// catch up after the cut.
func cut(ctx context.Context, t *trial, all []*member) error {
	p := either(t, long, short)
	for _, m := range all {
		if err := m.begin(ctx, load.Config{Users: federated, Job: roaming(m.Name), Every: cutEvery, Prefix: "cut"}); err != nil {
			return err
		}
	}
	victim := all[len(all)-1]
	cutAt, healed, err := t.cutFor(ctx, victim, p)
	for _, m := range all {
		m.result = m.load.Stop()
	}
	if err != nil {
		return err
	}
	if err := t.catchUp(ctx, all, healed); err != nil {
		return err
	}
	for _, m := range all {
		if err := m.reportThroughput(ctx, m == victim, cutAt, healed, p); err != nil {
			return err
		}
	}
	return t.compare(ctx, all)
}

// cutFor lets the sites work for some time, then cuts one off, and connects it again.
func (t *trial) cutFor(ctx context.Context, victim *member, p phases) (cutAt, healed time.Time, err error) {
	if err := wait(ctx, settling+p.before); err != nil {
		return cutAt, healed, err
	}
	t.log("%s is cut off for %v", victim.Name, p.cut)
	cutAt = time.Now()
	t.Lab.Cut(victim.Site)
	err = wait(ctx, p.cut)
	t.Lab.Heal(victim.Site)
	t.log("healed")
	return cutAt, time.Now(), err
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// catchUp measures the time from the end of the cut until all records agree.
func (t *trial) catchUp(ctx context.Context, all []*member, healed time.Time) error {
	if err := everyone(all, func(m *member) error { return m.settle(ctx) }); err != nil {
		return err
	}
	t.time("from the healing until all jobs that waited for it have ended", time.Since(healed))
	if err := t.agree(ctx, all); err != nil {
		return err
	}
	took := time.Since(healed)
	t.time("from the healing until all books and statements agree", took)
	if took > agreeWithin {
		t.breaks("all books and statements agreed %v after the end of the cut, which is more than %v", took.Round(time.Millisecond), agreeWithin)
	}
	return nil
}

// reportThroughput reports how many jobs of its own users the site completed per second, before and during the cut. It
// also reports how long these users waited for answers to their submissions.
func (m *member) reportThroughput(ctx context.Context, victim bool, cutAt, healed time.Time, p phases) error {
	jobs, err := m.jobs(ctx)
	if err != nil {
		return err
	}
	t := m.trial
	before := perSecond(jobs, cutAt.Add(-p.before), cutAt)
	during := perSecond(jobs, cutAt, healed)
	t.add("own jobs completed by "+m.Name+" before the cut", before, "a second")
	t.add("own jobs completed by "+m.Name+" during the cut", during, "a second")
	var own, away []time.Duration
	for _, a := range m.result.Acks {
		switch {
		case a.Sent.Before(cutAt) || a.Sent.After(healed):
		case a.Site == "":
			own = append(own, a.Waited())
		default:
			away = append(away, a.Waited())
		}
	}
	t.times("answer at "+m.Name+" during the cut", own)
	t.times("answer at "+m.Name+" during the cut, for another site", away)
	if victim && during < leastThroughput*before {
		t.breaks("%s completed %.2f jobs a second while it was cut off, but %.2f before", m.Name, during, before)
	}
	return nil
}

// perSecond returns how many jobs of the site's own users completed at this site, per second.
func perSecond(jobs map[messages.JobID]job.JobSummary, from, to time.Time) float64 {
	n := 0
	for _, j := range jobs {
		if j.Away == nil && j.Visit == nil && j.State == job.Completed && j.Ended >= messages.TimeOf(from) && j.Ended < messages.TimeOf(to) {
			n++
		}
	}
	return float64(n) / to.Sub(from).Seconds()
}
