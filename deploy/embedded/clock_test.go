package embedded

import (
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner/boottime"
	"github.com/candor-grid/candor/nodeagent/runner/executor"
)

type settable struct{ ahead atomic.Int64 }

func (c *settable) now() messages.Time {
	return messages.TimeOf(time.Now().Add(time.Duration(c.ahead.Load())))
}

func (c *settable) set(ahead time.Duration) { c.ahead.Store(int64(ahead)) }

func trivial() jobmsg.JobSpec {
	return jobmsg.JobSpec{Name: "trivial", Budget: messages.Credit, Stages: []jobmsg.Stage{{Name: "only", Class: "map", Script: ":\n"}}}
}

// This method submits a job, waits until it is settled, and returns it.
func (u user) runs(key string) jobmsg.JobDetail {
	u.Helper()
	job := u.final(u.submit(key, trivial()))
	if job.State != jobmsg.Completed {
		u.Errorf("%s: the job ended %v: %s", key, job.State, job.Reason)
	}
	await.Until(u.T, key+": nothing is held", func() bool { return u.account().Holds == 0 })
	return job
}

// TestClockIsSetAndSetRight sets the clock of a site's only host wrong for a moment, by ten minutes or an hour in
// either direction. Jobs must run and be settled meanwhile and afterwards.
func TestClockIsSetAndSetRight(t *testing.T) {
	t.Parallel()
	clock := new(settable)
	s, err := Start(within(t), small(t.TempDir()), Options{Wall: clock.now})
	if err != nil {
		t.Fatal(err)
	}
	defer closeSite(t, s)
	alice := connect(t, s, "alice")
	alice.runs("before")
	for name, by := range map[string]time.Duration{"ten minutes forward": 10 * time.Minute, "an hour forward": time.Hour, "an hour back": -time.Hour} {
		clock.set(by)
		alice.runs(name)
		clock.set(0)
		job := alice.runs("right again after " + name)
		if off := time.Since(job.Submitted.Std()); off < -5*time.Second || off > patience {
			t.Errorf("%s: the job was submitted %v ago", name, off)
		}
	}
}

// TestClockOfOneHostIsWrong sets the clock of a host wrong, first at one host, then at the next, then at the third. So
// at one of these times, the leader has the wrong clock. Jobs must still run, and their times must be right.
func TestClockOfOneHostIsWrong(t *testing.T) {
	t.Parallel()
	dir, clocks := t.TempDir(), [3]settable{}
	base := Default()
	base.Keys, base.Replicas, base.Hosts = filepath.Join(dir, "keys"), 0, ownAddresses(t)
	if _, err := identity.Create(base.Keys, base.Site); err != nil {
		t.Fatal(err)
	}
	sites := startHosts(t, base, dir, func(host int, o *Options) { o.Wall = clocks[host].now })
	alice := connect(t, sites[0], "alice")
	alice.runs("before")
	for i := range clocks {
		clocks[i].set([]time.Duration{time.Hour, -time.Hour, 10 * time.Minute}[i])
		await.Until(t, "the host knows that its clock is wrong", func() bool {
			ahead := sites[i].clock.Ahead()
			return max(ahead, -ahead) > messages.Duration(time.Minute)
		})
		job := alice.runs("wrong on " + base.Hosts[i].Name)
		if off := time.Since(job.Submitted.Std()); off < -5*time.Second || off > patience {
			t.Errorf("host %d: the job was submitted %v ago", i, off)
		}
		clocks[i].set(0)
	}
}

// TestNobodyPaysForALeapOfTheClocks sets the clocks of all three hosts ahead by a day while a task runs. The job must
// pay only for the real time.
func TestNobodyPaysForALeapOfTheClocks(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), settable{}
	base := Default()
	base.Keys, base.Replicas, base.Hosts = filepath.Join(dir, "keys"), 0, ownAddresses(t)
	if _, err := identity.Create(base.Keys, base.Site); err != nil {
		t.Fatal(err)
	}
	sites := startHosts(t, base, dir, func(_ int, o *Options) { o.Wall = clock.now })
	await.Until(t, "the hosts have compared their clocks", func() bool {
		return !slices.ContainsFunc(sites, func(s *Site) bool { return !s.clock.Known() })
	})
	alice := connect(t, sites[0], "alice")
	goOn := filepath.Join(dir, "go on")
	waits := trivial()
	waits.Stages[0].Script = "while [ ! -e '" + goOn + "' ]; do sleep 0.05; done\n"
	id := alice.submit("waits", waits)
	alice.await("the task runs", func() bool { return alice.job(id).Stages[0].Running == 1 })
	before := sites[0].clock.Now()
	clock.set(24 * time.Hour)
	await.Until(t, "the hosts believe their clocks", func() bool { return sites[0].clock.Now().Sub(before) > messages.Duration(time.Hour) })
	alice.final(alice.submit("after the leap", trivial()))
	if err := os.WriteFile(goOn, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if job := alice.final(id); job.State != jobmsg.Completed || job.Stages[0].SlotTime > messages.Duration(patience) {
		t.Errorf("the job ended %v %s, and had its slot for %v", job.State, job.Reason, job.Stages[0].SlotTime)
	}
}

// TestNobodyPaysForAClockSetWhileTheSiteIsDown sets the clock by a day while the site is stopped and a task runs. The
// job must pay only for the real time.
func TestNobodyPaysForAClockSetWhileTheSiteIsDown(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{"ahead": 24 * time.Hour, "back": -24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, c, clock := t.TempDir(), small(t.TempDir()), settable{}
			o := Options{Executor: executor.Self(), LeaveRunning: true, Wall: clock.now}
			s, err := Start(within(t), c, o)
			if err != nil {
				t.Fatal(err)
			}
			id := connect(t, s, "alice").submit("lives", lives(dir, 1))
			lines(t, filepath.Join(dir, "begun"), 1)
			await.Until(t, "the clock is kept", func() bool {
				_, err := os.Stat(filepath.Join(c.State, clockFile))
				return err == nil
			})
			closeSite(t, s)
			clock.set(by)
			o.LeaveRunning = false
			if s, err = Start(within(t), c, o); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { closeSite(t, s) })
			release(t, dir)
			job := connect(t, s, "alice").final(id)
			if had := job.Stages[0].SlotTime; job.State != jobmsg.Completed || had <= 0 || had > messages.Duration(patience) {
				t.Errorf("the job ended %v %s, and had its slot for %v", job.State, job.Reason, had)
			}
		})
	}
}

// TestADamagedClockIsNotBelieved damages the stored clock. The next start must use the host's own clock.
func TestADamagedClockIsNotBelieved(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	kept := keptClock{Boot: boottime.Boot(), Offset: messages.Duration(100 * 365 * 24 * time.Hour)}
	if err := os.MkdirAll(c.State, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := replaceJSON(filepath.Join(c.State, clockFile), kept); err != nil {
		t.Fatal(err)
	}
	s, err := Start(within(t), c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeSite(t, s)
	if off := time.Since(s.clock.Now().Std()); off < -time.Minute || off > time.Minute {
		t.Errorf("the site's time is %v ago", off)
	}
}

// TestClockOfOneSiteIsSetAndSetRight sets the clock of one of two sites far ahead or back, and then right. Jobs must
// run in both directions and be settled.
func TestClockOfOneSiteIsSetAndSetRight(t *testing.T) {
	t.Parallel()
	clock := new(settable)
	var sites Sites
	for i, c := range firstLook(t, "west", "east") {
		o := Options{}
		if i == 0 {
			o.Wall = clock.now
		}
		s, err := prepared(c, o)
		if err != nil {
			t.Fatal(err)
		}
		sites = append(sites, s)
	}
	defer sites.Close()
	for i, s := range sites {
		if err := s.join(sites[:i], sites[i+1:], 500*messages.Credit); err != nil {
			t.Fatal(err)
		}
	}
	if err := Each(sites, func(s *Site) error { return s.startActors(within(t)) }); err != nil {
		t.Fatal(err)
	}
	west, east := connect(t, sites[0], "alice"), connect(t, sites[1], "alice")
	travel := func(key string) {
		there, back := west.submitTo(key, "east", trivial()), east.submitTo(key, "west", trivial())
		for _, job := range []jobmsg.JobDetail{west.final(there.Job), east.final(back.Job)} {
			if job.State != jobmsg.Completed {
				t.Errorf("%s: job %d ended %v: %s %s", key, job.Job, job.State, job.Reason, job.Message)
			}
		}
		for _, u := range []user{west, east} {
			await.Until(t, key+": nothing is held", func() bool { return u.account().Holds == 0 })
		}
	}
	travel("before")
	for name, by := range map[string]time.Duration{"ten minutes forward": 10 * time.Minute, "a day forward": 24 * time.Hour, "an hour back": -time.Hour} {
		clock.set(by)
		west.runs(name)
		if by == 10*time.Minute {
			travel("meanwhile, " + name)
		}
		clock.set(0)
		travel("right again after " + name)
	}
}
