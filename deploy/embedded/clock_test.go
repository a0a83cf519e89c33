package embedded

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
)

// settable is a wall clock that can be set.
type settable struct{ ahead atomic.Int64 }

func (c *settable) now() messages.Time {
	return messages.TimeOf(time.Now().Add(time.Duration(c.ahead.Load())))
}

func (c *settable) set(ahead time.Duration) { c.ahead.Store(int64(ahead)) }

// trivial is a job of one task.
func trivial() messages.JobSpec {
	return messages.JobSpec{Name: "trivial", Budget: messages.Credit, Stages: []messages.Stage{{Name: "only", Class: "map", Script: ":\n"}}}
}

// runs has a job run and settled, and returns it.
func (u user) runs(key string) messages.JobDetail {
	u.Helper()
	job := u.final(u.submit(key, trivial()))
	if job.State != messages.Completed {
		u.Errorf("%s: the job ended %v: %s", key, job.State, job.Reason)
	}
	await.Until(u.T, key+": nothing is held", func() bool { return u.account().Holds == 0 })
	return job
}

// TestClockIsSetAndSetRight: a site of one host whose clock is set for a moment, by ten
// minutes or an hour either way, runs and settles jobs meanwhile and afterwards.
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
		if off := time.Since(job.Submitted.Std()); off < -time.Second || off > patience {
			t.Errorf("%s: the job was submitted %v ago", name, off)
		}
	}
}

// TestClockOfOneHostIsWrong: of three hosts one after the other has a clock that is wrong
// by an hour, whoever leads; jobs run, and their times are right.
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
