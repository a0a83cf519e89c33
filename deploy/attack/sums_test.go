package attack

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// In these attempts, several tasks together try to use more than one task may use, or try to leave something behind. A
// task of another account must not start more than a second later than without the attempt. The submission of this task
// may be refused only while the replicas lack space. The room of the attacking account (package room) limits what this
// account leaves on a node.

const (
	smallMiB    = 900
	smallInodes = 60_000
	fullMiB     = 64  // with less free space, the disk counts as full
	healedMiB   = 448 // with more free space, a node whose disk was almost full takes tasks again
)

// use has the least free space of the disk, and the largest number of processes and threads, during an attempt.
type use struct {
	mu       sync.Mutex
	free     int64 // free MiB of the disk of the replicas
	entities int   // number of processes and threads on the machine
	stop     chan struct{}
	stopped  sync.WaitGroup
}

// This method starts to record the free space of the site's disk and the number of processes on the machine.
func (s *site) used() *use {
	u := &use{free: math.MaxInt64, stop: make(chan struct{})}
	u.stopped.Go(func() {
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for {
			u.look(s.state)
			select {
			case <-u.stop:
				return
			case <-ticker.C:
			}
		}
	})
	return u
}

func (u *use) look(dir string) {
	free, entities := freeMiB(dir), entities()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.free, u.entities = min(u.free, free), max(u.entities, entities)
}

func (u *use) end() {
	close(u.stop)
	u.stopped.Wait()
}

// freeMiB returns the free space of a disk, in MiB. A disk can also run out of inodes. If a smaller fraction of the
// inodes than of the blocks is free, freeMiB returns the size of the disk multiplied by the free fraction of the
// inodes.
func freeMiB(dir string) int64 {
	var d unix.Statfs_t
	if err := unix.Statfs(dir, &d); err != nil {
		return math.MaxInt64
	}
	free := int64(d.Bavail) * d.Bsize
	if d.Files > 0 {
		free = min(free, int64(float64(d.Ffree)/float64(d.Files)*float64(d.Blocks)*float64(d.Bsize)))
	}
	return free >> 20
}

func entities() (n int) {
	text, _ := os.ReadFile("/proc/loadavg") // example of the text: 0.05 0.10 0.12 1/345 6789
	if f := strings.Fields(string(text)); len(f) == 5 {
		_, all, _ := strings.Cut(f[3], "/")
		n, _ = strconv.Atoi(all)
	}
	return n
}

func smallDisk(t *testing.T, owner *syscall.Credential) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small disk")
	}
	dir, err := os.MkdirTemp("/var/lib", "candor-attack-")
	if err != nil {
		t.Fatal(err)
	}
	options := fmt.Sprintf("size=%dm,nr_inodes=%d,mode=755", smallMiB, smallInodes)
	if owner != nil {
		options += fmt.Sprintf(",uid=%d,gid=%d", owner.Uid, owner.Gid)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		_ = os.Remove(dir)
		t.Skip("cannot mount: ", err)
	}
	t.Cleanup(func() {
		_ = unix.Unmount(dir, unix.MNT_DETACH)
		_ = os.Remove(dir)
	})
	return filepath.Join(dir, "state")
}

// The type `sum` describes an attack by several tasks together. Each of these tasks stays within its own limits.
type sum struct {
	what string
	// abilities of the node without which the site cannot refuse the attempt
	needs []messages.Name
	// try attacks the site in the way that `what` describes, with bob's tasks. It returns the jobs that still run.
	try func(h *holder) []messages.JobID
	// effect returns an effect that only this kind of attempt can have, or "" if it had none. In addition, every
	// attempt is checked for two effects: that tasks of others start late, and that the disk is full.
	effect func(h *holder, u *use) string
}

// onDisk are attempts to fill the disk. The tasks have the default limits.
var onDisk = []sum{
	{what: "twenty tasks leave 50 MB each", try: func(h *holder) []messages.JobID {
		h.bobs(jobmsg.Stage{Name: "main", Script: "head -c 50000000 /dev/zero >left", Tasks: 20, Attempts: 1})
		return nil
	}},
	{what: "twenty tasks leave 50 MB each in /tmp", needs: []messages.Name{agent.AbilityApart}, try: func(h *holder) []messages.JobID {
		h.bobs(jobmsg.Stage{Name: "main", Script: "head -c 50000000 /dev/zero >/tmp/left$CANDOR_TASK", Tasks: 20, Attempts: 1})
		return nil
	}},
	{what: "a task fills the log and the directory of an earlier one", try: func(h *holder) []messages.JobID {
		takes, _ := h.begin("writeon")
		// the log of this job may be full or removed, so only the end of the job is checked
		gives := h.submits("passdir")
		if j := h.job("bob", gives, func(j jobmsg.JobDetail) bool { return j.State.Final() }); j.State != jobmsg.Completed {
			h.Logf("the task that passes its directory on is %v", j.State)
		}
		await.Until(h.T, "the other has written there", func() bool {
			said, _ := h.candor("bob", "logs", takes.String())
			return strings.Contains(said, "wrote") || h.job("bob", takes, func(jobmsg.JobDetail) bool { return true }).State.Final()
		})
		return []messages.JobID{takes}
	}},
	{what: "a task makes as many empty files as it can", try: func(h *holder) []messages.JobID {
		job := h.submits("empty") // the job ends so soon that its log may be removed before it is read
		h.job("bob", job, func(j jobmsg.JobDetail) bool { return j.Running > 0 || j.State.Final() })
		return []messages.JobID{job}
	}},
	{what: "three tasks make as many threads as they can", needs: []messages.Name{agent.AbilityPids, agent.AbilityApart}, try: begin("threads", "threads", "threads"), effect: fewProcesses},
	{what: "three tasks leave a thousand ended processes each", needs: []messages.Name{agent.AbilityPids}, try: begin("zombies", "zombies", "zombies"), effect: fewProcesses},
	{what: "two tasks fill the kernel's buffers of connections", needs: []messages.Name{agent.AbilityMemory, agent.AbilityApart}, try: begin("buffers", "buffers")},
	{what: "a task keeps the buffers that earlier ones filled", needs: []messages.Name{agent.AbilityMemory, agent.AbilityApart}, try: func(h *holder) []messages.JobID {
		return append(begin("keep")(h), begin("passbuffers", "passbuffers", "passbuffers", "passbuffers")(h)...)
	}},
	{what: "daemons outlive their task", needs: []messages.Name{agent.AbilityFreeze}, try: func(h *holder) []messages.JobID {
		job, _ := h.begin("daemons")
		h.job("bob", job, func(j jobmsg.JobDetail) bool { return j.State.Final() })
		h.ended = job
		return nil
	}, effect: func(h *holder, _ *use) string {
		if pid := marked(daemonEnv + "=" + h.ended.String()); pid != 0 {
			_ = unix.Kill(pid, unix.SIGKILL)
			return fmt.Sprintf("process %d runs on", pid)
		}
		return ""
	}},
}

// inMemory are attempts to use more memory than the tasks' limits allow.
var inMemory = []sum{
	{what: "six tasks leave System V segments", needs: []messages.Name{agent.AbilityMemory, agent.AbilityApart}, try: func(h *holder) []messages.JobID {
		for range 6 {
			h.runs("segment")
		}
		return nil
	},
		effect: func(h *holder, _ *use) string {
			most := 0
			for _, said := range h.said {
				var left int
				_, _ = fmt.Sscanf(said[max(0, strings.Index(said, "begun")):], "begun %d", &left)
				most = max(most, left)
			}
			if most > mostMiB {
				return fmt.Sprintf("%d MiB of segments", most)
			}
			return ""
		}},
	{what: "a task keeps the memory of six others", needs: []messages.Name{agent.AbilityMemory, agent.AbilityApart}, try: func(h *holder) []messages.JobID {
		jobs := begin("keep")(h)
		for range 6 {
			h.runs("passmemory")
		}
		return jobs
	}, effect: func(h *holder, _ *use) string {
		kept := 0
		for _, said := range h.said {
			kept += strings.Count(said, "begun <nil>") * mostMiB * 3 / 4
		}
		if most := 2*mostMiB + 64; kept > most { // the memory of two tasks, and the margin of an account
			return fmt.Sprintf("%d MiB, and two tasks may have %d", kept, most)
		}
		return ""
	}},
}

func begin(names ...string) func(h *holder) []messages.JobID {
	return func(h *holder) (jobs []messages.JobID) {
		for _, name := range names {
			job, said := h.begin(name)
			h.said, jobs = append(h.said, said), append(jobs, job)
		}
		return jobs
	}
}

// Three tasks of one account together may start at most a quarter of the processes that the machine allows. A quarter
// is the limit for an account.
func fewProcesses(h *holder, u *use) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	text, _ := os.ReadFile("/proc/sys/kernel/pid_max")
	most, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	const others = 1000 // margin for other processes that start meanwhile
	if more := u.entities - h.entities; more > most/4+others {
		return fmt.Sprintf("%d processes and threads, of %d", more, most)
	}
	return ""
}

func fromSums(s *site, sums []sum) (attempts []attempt) {
	s.Helper()
	h, abilities := s.holder(), s.abilities()
	for _, sum := range sums {
		lacks := slices.DeleteFunc(slices.Clone(sum.needs), func(a messages.Name) bool { return slices.Contains(abilities, a) })
		if len(lacks) > 0 {
			attempts = append(attempts, attempt{What: sum.what, Needs: unprotected, Effect: fmt.Sprintf("not tried: nothing bounds it without the ability %q", lacks[0])})
			continue
		}
		attempts = append(attempts, h.tries(sum))
	}
	return append(attempts, s.goesOn())
}

// Bob is the attacker here. This method makes one attempt with bob's tasks, and measures its effects on the site.
func (h *holder) tries(of sum) attempt {
	h.Helper()
	h.said, h.entities = nil, entities()
	u := h.used()
	jobs := of.try(h)
	a := h.measured(of.what)
	var effects []string
	if of.effect != nil {
		effects = append(effects, of.effect(h, u))
	}
	for _, job := range jobs {
		h.over(job)
		said, _ := h.candor("bob", "logs", job.String())
		h.Logf("%s: %s", of.what, line(said))
	}
	u.end()
	if testing.Verbose() {
		h.Logf("%s: at least %d MiB were free", of.what, u.free)
	}
	if u.free < fullMiB {
		effects = append(effects, fmt.Sprintf("only %d MiB of the disk were free", u.free))
	}
	a.Effect = strings.Join(slices.DeleteFunc(append(effects, a.Effect), func(e string) bool { return e == "" }), "; ")
	a.Refusal = strings.Replace(a.Refusal, "another's task started and ended", fmt.Sprintf("of the disk at least %d MiB were free; another's task ended", u.free), 1)
	await.Until(h.T, "the disk has room again, after "+of.what, func() bool { return freeMiB(h.state) > healedMiB })
	h.startOne(h.alice) // when this job has run, the replicas have seen the full disk
	return a
}

// TestAttackBySums: each task stays within its own limits, but several tasks together try to fill the disk or the
// memory of the machine, at once or one after the other. The test does this on each kind of site that the package
// attacks.
func TestAttackBySums(t *testing.T) {
	if !everything() {
		t.Skip("only in make attack: package runner has short tests of the same")
	}
	eachForm(t, func(t *testing.T, start func(t *testing.T, state, tasks string) *site, user *syscall.Credential) {
		s := start(t, smallDisk(t, user), "")
		s.judge(fromSums(s, onDisk))
		s = start(t, stateDir(t, user), fmt.Sprintf(", memory_mib: %d", mostMiB))
		s.judge(fromSums(s, inMemory))
	})
}
