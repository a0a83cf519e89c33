package attack

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

// These are the limits of the attacked site, and its configuration. The site has one node, so all tasks of an account
// run there.
const (
	mostMiB       = 64 // memory of a task
	mostProcesses = 64
	diskMiB       = 32

	limits = `site: west
accounts: [{name: alice, grant: 1000}, {name: bob, grant: 1000}]
operators: [operator]
markets: [{name: main, mechanism: proportional, classes: [map]}]
nodes: [{name: node1, slots: {map: 3}}]
tasks: {memory_mib: 64, processes: 64, disk_mib: 32}
files: {quota_mib: 256}
`
)

// If this variable is set, the test program runs as a bomb: in a task, it uses more than it may.
const bombEnv = "CANDOR_BOMB"

// bombs are programs that use more of the machine than their limits allow. Each prints how much it got beyond its
// limit. The node ends most of the programs before they can print.
var bombs = []struct {
	short      bool // tried in every test; other bombs only if everything is tried
	name, what string
	needs      messages.Name // nodes with this ability refuse the bomb
	arguments  []string      // arguments for candor submit
	do         func() string
}{
	{true, "forks", "starts more processes than it may", agent.AbilityPids, nil, forks},
	{true, "memory", "uses more memory than it may", agent.AbilityMemory, nil, usesMemory},
	{false, "shared", "fills shared memory above its limit", agent.AbilityMemory, nil, fillsShared},
	{false, "sharedagain", "fills shared memory above its limit, one task after another", agent.AbilityMemory, nil, fillsShared},
	{true, "covers", "fills with files what hides the site's state", agent.AbilityApart, nil, fillsCovers},
	{false, "file", "writes a file above its limit", "", nil, func() string { return stays(fills("big", diskMiB*2)) }},
	{false, "files", "writes many small files", "", nil, writesFiles},
	{true, "deep", "hides a file below a path that is too long", "", nil, hidesDeep},
	{true, "deleted", "keeps a deleted file open", "", nil, func() string {
		f, err := os.Create("deleted")
		defer runtime.KeepAlive(f) // otherwise the finalizer would close the file during the 20 s
		_ = os.Remove("deleted")
		for err == nil {
			_, err = f.Write(make([]byte, 1<<20))
			if size, _ := f.Seek(0, 1); size > diskMiB*2<<20 {
				break
			}
		}
		return stays(err)
	}},
	{false, "reserves", "reserves room for a file without writing it", "", nil, func() string {
		f, err := os.Create("reserved")
		if err == nil {
			err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, diskMiB*2<<20)
		}
		return stays(err)
	}},
	{false, "tmp", "fills /tmp", agent.AbilityApart, nil, func() string { return stays(fills("/tmp/big", diskMiB*2)) }},
	{false, "vartmp", "fills /var/tmp", agent.AbilityApart, nil, func() string { return stays(fills("/var/tmp/big", diskMiB*2)) }},
	{false, "sparse", "leaves a sparse file of a terabyte as its output", "", []string{"--output", "sparse"}, func() string {
		if err := os.WriteFile("sparse", []byte("x"), 0o600); err != nil {
			return ""
		}
		_ = os.Truncate("sparse", 1<<40)
		return ""
	}},
	{false, "log", "fills its log", "", nil, func() string {
		text := []byte(strings.Repeat(strings.Repeat("x", 1023)+"\n", 1024))
		for range 300 {
			_, _ = os.Stdout.Write(text)
		}
		return ""
	}},
	{false, "threads", "holds every file and lock that it can", "", nil, holdsFiles},
}

func bomb(name string) {
	if os.Getenv("CANDOR_TASK") == "" {
		panic("is started by a task of the attacked site, not by hand")
	}
	if err := os.Setenv(bombEnv, ""); err != nil {
		panic(err)
	}
	for _, b := range bombs {
		if b.name == name {
			if got := b.do(); got != "" {
				fmt.Println("GOT " + got)
			}
		}
	}
}

// stays is called by a task that has tried to use too much disk space. The argument `err` is the error of this try. If
// the try failed, stays returns "" at once. Otherwise the node should end the task within 20 s. If the task still runs
// after this time, stays returns a text that says how much disk space it could use.
func stays(err error) string {
	if err != nil {
		return ""
	}
	time.Sleep(20 * time.Second)
	return fmt.Sprintf("more than %d MiB for 20 s", diskMiB)
}

func fills(path string, mib int) error {
	f, err := os.Create(path)
	for i := 0; i < mib && err == nil; i++ {
		_, err = f.Write(make([]byte, 1<<20))
	}
	return err
}

func forks() string {
	started := 0
	for range 4 * mostProcesses {
		c := exec.Command("/bin/sleep", "5")
		if c.Start() != nil {
			break
		}
		started++
	}
	if started >= mostProcesses {
		return fmt.Sprintf("%d processes", started)
	}
	return ""
}

func usesMemory() string {
	var kept [][]byte
	for range 4 * mostMiB {
		part, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return ""
		}
		for i := 0; i < len(part); i += 4096 {
			part[i] = 1
		}
		kept = append(kept, part)
	}
	return fmt.Sprintf("%d MiB of memory", len(kept))
}

// fillsShared writes into shared memory, up to three quarters of a task's limit. If the shared memory then has more
// than a task's limit in use, earlier tasks have left data there, and fillsShared returns the size in use.
func fillsShared() string {
	path := fmt.Sprintf("/dev/shm/%d", time.Now().UnixNano())
	_ = fills(path, mostMiB*3/4)
	var have unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &have); err != nil {
		return ""
	}
	if used := (have.Blocks - have.Bfree) * uint64(have.Bsize) >> 20; used > mostMiB {
		return fmt.Sprintf("%d MiB of shared memory", used)
	}
	return ""
}

func fillsCovers() (got string) {
	table, _ := os.ReadFile("/proc/self/mounts")
	for _, row := range strings.Split(string(table), "\n") {
		f := strings.Fields(row)
		if len(f) < 3 || f[2] != "tmpfs" || f[1] == "/dev/shm" {
			continue
		}
		path := filepath.Join(f[1], "big")
		if _ = fills(path, mostMiB/4); sizeOf(path) >= 4<<20 {
			got += fmt.Sprintf("%d MiB in %s; ", sizeOf(path)>>20, f[1])
		}
		_ = os.Remove(path)
	}
	return got
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func writesFiles() string {
	for i := range 40_000 {
		if err := os.WriteFile(fmt.Sprint("small", i), []byte("x"), 0o600); err != nil {
			return ""
		}
	}
	return stays(nil)
}

// hidesDeep makes many nested directories with long names, and writes twice the disk limit into the deepest one.
func hidesDeep() string {
	for range 40 {
		name := strings.Repeat("d", 250)
		if err := os.Mkdir(name, 0o700); err != nil {
			return ""
		}
		if err := unix.Chdir(name); err != nil {
			return ""
		}
	}
	return stays(fills("big", diskMiB*2))
}

func holdsFiles() string {
	for i := range 1 << 20 {
		fd, err := unix.Open("/", unix.O_RDONLY, 0)
		if err != nil {
			return ""
		}
		if i == 1<<20-1 {
			return fmt.Sprintf("%d open files", fd)
		}
	}
	return ""
}

// upLimited starts a site with the configuration in the constant `limits`. The site runs as the given user. If `user`
// is nil, it runs as the user of this process.
func upLimited(t *testing.T, user *syscall.Credential) *site {
	t.Helper()
	file := filepath.Join(scratch, fmt.Sprintf("limits%d.yaml", time.Now().UnixNano()))
	if err := os.WriteFile(file, []byte(limits), 0o644); err != nil {
		t.Fatal(err)
	}
	s := upAs(t, user, "--config", file)
	s.nodes = 1
	return s
}

// usesTooMuch makes bob's tasks use more than they may. A job of alice must run after that.
func usesTooMuch(t *testing.T, s *site) (attempts []attempt) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	abilities := s.abilities()
	for _, b := range bombs {
		if !b.short && !everything() {
			continue
		}
		a := attempt{What: "a task " + b.what}
		if b.needs != "" && !slices.Contains(abilities, b.needs) {
			a.Needs = unprotected
		}
		script := filepath.Join(t.TempDir(), "bomb.sh")
		if err := os.WriteFile(script, []byte("#!/bin/sh\nexec ./attacker\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		before := s.kept()
		arguments := append([]string{"submit", "--script", "--budget", "5", "--chdir", "-", "--input", self + "=attacker", "--attempts", "1", "--time", "60s",
			"--env", bombEnv + "=" + b.name, "--name", b.name, "--wait", "--json"}, b.arguments...)
		text, _ := s.candor("bob", append(arguments, script)...)
		var j job.JobDetail
		if err := json.Unmarshal([]byte(text[max(0, strings.Index(text, "{")):]), &j); err != nil {
			t.Fatalf("%s: %v in %s", b.name, err, text)
		}
		out, _ := s.candor("bob", "logs", j.Job.String())
		why, _ := s.candor("bob", "why", j.Job.String())
		if at := strings.Index(out, "GOT "); at >= 0 {
			a.Effect = line(out[at+4:])
		}
		if more := s.kept() - before; more > 128<<20 { // the log, the inputs and the allowed files of the task
			a.Effect += fmt.Sprintf("%d MiB more are kept on the node's disk", more>>20)
		}
		if s.gone() {
			a.Effect = "the site's process ended"
		}
		if _, reason, failed := strings.Cut(why, "at last with "); failed {
			a.Refusal = reason
		} else {
			a.Refusal = fmt.Sprintf("it got no more, and ended %v", j.State)
		}
		attempts = append(attempts, a)
	}
	return append(attempts, s.asksTooMuch(), s.goesOn())
}

func (s *site) asksTooMuch() attempt {
	a := attempt{What: "a user asks for more memory than the site gives"}
	script := filepath.Join(s.TempDir(), "asks.sh")
	if err := os.WriteFile(script, []byte("true\n"), 0o644); err != nil {
		s.Fatal(err)
	}
	text, err := s.candor("bob", "submit", "--budget", "1", "--memory", fmt.Sprint(mostMiB+1, "M"), script)
	if err == nil {
		a.Effect = text
	}
	a.Refusal = text
	return a
}

func (s *site) goesOn() attempt {
	a := attempt{What: "after all that, another's job runs"}
	reply := ask[job.SubmitReply](s, "alice", messages.Auctioneer, messages.VerbSubmit, job.SubmitRequest{Key: "after",
		Spec: job.JobSpec{Budget: messages.Credit, Stages: []job.Stage{{Name: "main", Script: "true", Attempts: 1}}}})
	if j := s.job("alice", reply.Job, func(j job.JobDetail) bool { return j.State.Final() }); j.State != job.Completed {
		a.Effect = fmt.Sprintf("it ended %v", j.State)
	}
	return a
}

func (s *site) kept() (sum int64) {
	_ = filepath.WalkDir(s.state, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil {
			if stat, ok := info.Sys().(*syscall.Stat_t); ok {
				sum += stat.Blocks * 512
			}
		}
		return nil
	})
	return sum
}

func TestAttackOnLimits(t *testing.T) {
	t.Parallel()
	attackLimits(t, upLimited(t, nil))
}

func TestAttackOnLimitsOfOrdinaryUser(t *testing.T) {
	switch {
	case os.Geteuid() != 0:
		t.Skip("every test here is that")
	case !everything():
		t.Skip("only in make attack")
	}
	t.Parallel()
	attackLimits(t, upLimited(t, ordinary))
}

func attackLimits(t *testing.T, s *site) {
	t.Helper()
	s.judge(usesTooMuch(t, s))
}
