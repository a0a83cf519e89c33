package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/executor"
)

// TestTaskIsAStranger attacks from a task, on a site that root starts with the default settings. No attack may reach
// anything of the site. In the control, tasks run as the site's user, and the same attacks must succeed.
func TestTaskIsAStranger(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	for user, want := range map[string]bool{"": false, runner.UserSelf: true} {
		c := small(t.TempDir())
		c.Replicas, c.Tasks.User = 1, user
		s, err := Start(within(t), c, Options{Executor: executor.Self()})
		if err != nil {
			t.Fatal(err)
		}
		reached := reaches(t, s, attacks(&c))
		if !want && reached != "" {
			t.Errorf("a task reached %s", reached)
		}
		if want && !strings.Contains(reached, "operator.creds") {
			t.Errorf("the control: a task of the site's own user reached no more than %q", reached)
		}
		closeSite(t, s)
	}
}

// attacks are shell commands that a task runs. A command prints something, or succeeds, only if the task can reach
// something that belongs to the site.
func attacks(c *Config) map[string]string {
	state := c.State
	return map[string]string{
		"operator.creds":        "cat " + CredsFile(state, "operator"),
		"the keys":              "find " + state + "/keys -type f | xargs cat",
		"the bank's log":        "cat " + state + "/bank/*/* ",
		"what the site is":      "cat " + state + "/shape.json",
		"users of others":       "cat " + state + "/users",
		"the site's state":      "echo x > " + state + "/x && echo written",
		"the executor's socket": "test -S " + state + "/nodes/node1/executor.sock -o -S " + state + "/nodes/node2/executor.sock && echo there",
		"the executor's log":    "cat " + state + "/nodes/*/executor.lock && echo there",
		"jobs of others":        "ls -A " + state + "/nodes/*/jobs | grep -v -e : -e '^alice$' | grep .",
		"the site's process":    fmt.Sprintf("cat /proc/%[1]d/environ /proc/%[1]d/root/etc/hostname; kill -0 %[1]d && echo there", os.Getpid()),
		"capabilities":          "grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb):.*[1-9a-f]' /proc/self/status",
		"new privileges":        "grep 'NoNewPrivs:.*0' /proc/self/status",
		"shared memory":         "ls -A /dev/shm",
		"temporary files":       "ls -A /tmp /var/tmp | grep -v -e : -e '^[.]candor$' -e '^" + strings.Split(strings.TrimPrefix(state, "/var"), "/")[2] + "$' | grep .",
	}
}

// reaches runs attacks in a task, and returns the names of the attacks that had an effect.
func reaches(t *testing.T, s *Site, attacks map[string]string) string {
	t.Helper()
	var script strings.Builder
	for name, try := range attacks {
		fmt.Fprintf(&script, "if test -n \"$( (%s) 2>/dev/null | head -c 100 | tr -d '\\0')\"; then echo \"%s\"; fi\n", try, name)
	}
	u := connect(t, s, "alice")
	id := u.submit("attack", jobmsg.JobSpec{Budget: messages.Credit, Stages: []jobmsg.Stage{{Name: "main", Script: script.String() + "exit 0\n"}}})
	if j := u.final(id); j.State != jobmsg.Completed {
		t.Fatalf("the job ended %v: %+v", j.State, j)
	}
	files, _ := filepath.Glob(filepath.Join(s.config.State, "nodes", "*", "jobs", "alice", id.String(), "*.out"))
	var reached strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		reached.Write(text)
	}
	return reached.String()
}

// The refusal must name the requested and the allowed memory. A job with less memory must be accepted.
func TestMemoryAboveTheMostIsRefused(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Replicas, c.Tasks.MemoryMiB = 1, 256
	c.Tasks.Classes = map[messages.Name]TaskMemory{"reduce": {MaxMemoryMiB: 1024}}
	s := start(t, c)
	defer closeSite(t, s)
	u := connect(t, s, "alice")
	ask := func(class messages.Name, mib int64) error {
		spec := jobmsg.JobSpec{Budget: messages.Credit, Stages: []jobmsg.Stage{{Name: "main", Class: class, Memory: mib << 20, Command: []string{"true"}}}}
		_, err := bus.Call[jobmsg.SubmitReply](within(t), u.bus, messages.Subject(u.site, messages.Auctioneer, messages.VerbSubmit, u.name),
			jobmsg.SubmitRequest{Key: fmt.Sprint(class, mib), Spec: spec})
		return err
	}
	for _, e := range []struct {
		class messages.Name
		mib   int64
		most  string
	}{{"map", 8192, "256"}, {"map", 257, "256"}, {"reduce", 8192, "1024"}} {
		err := ask(e.class, e.mib)
		if messages.KindOf(err) != messages.TooLarge || !strings.Contains(fmt.Sprint(err), fmt.Sprint(e.mib, " MiB")) || !strings.Contains(fmt.Sprint(err), e.most+" MiB") {
			t.Errorf("%d MiB of class %s: %v", e.mib, e.class, err)
		}
	}
	for class, mib := range map[messages.Name]int64{"map": 256, "reduce": 1024} {
		if err := ask(class, mib); err != nil {
			t.Errorf("%d MiB of class %s: %v", mib, class, err)
		}
	}
}

// Other processes of the same user must not trace the process of a site with executors, and this process must leave no
// core file.
func TestProcessesWithKeysLeaveNoDumps(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Replicas = 1
	s, err := Start(within(t), c, Options{Executor: executor.Self()})
	if err != nil {
		t.Fatal(err)
	}
	defer closeSite(t, s)
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	var core unix.Rlimit
	if e := unix.Getrlimit(unix.RLIMIT_CORE, &core); err != nil || e != nil || dumpable != 0 || core.Cur != 0 {
		t.Errorf("dumpable %d, core limit %d: %v %v", dumpable, core.Cur, err, e)
	}
}

// Wrong settings for tasks must be refused, with an error that names the setting or the fault.
func TestTasksThatAreRefused(t *testing.T) {
	for want, tasks := range map[string]Tasks{
		"at least 256":       {User: "100000-100100"},
		"above 0":            {User: "0-70000"},
		"cannot run as root": {User: "root"},
		"other users":        {User: runner.UserSelf, Private: true},
		"disk_mib":           {DiskMiB: -1},
		"max_memory_mib":     {MemoryMiB: 10, MaxMemoryMiB: 5},
		"output_keep":        {OutputKeep: "head"},
		"output_mib":         {OutputMiB: -1},
		"is above":           {OutputMiB: 1 << 21},
		"map.output_mib":     {Classes: map[messages.Name]TaskMemory{"map": {OutputMiB: -1}}},
		"no node offers":     {Classes: map[messages.Name]TaskMemory{"gpu": {MemoryMiB: 5}}},
	} {
		c := small(filepath.Join(t.TempDir(), "state"))
		c.Tasks = tasks
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", tasks, err)
		}
	}
}
