package attack

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// abilities returns the abilities that every node of the site has.
func (s *site) abilities() (all []messages.Name) {
	s.Helper()
	for i, n := range ask[market.NodesReply](s, "alice", messages.Auctioneer, messages.VerbNodes, messages.Empty{}).Nodes {
		if i == 0 {
			all = n.Abilities
		}
		all = slices.DeleteFunc(all, func(a messages.Name) bool { return !slices.Contains(n.Abilities, a) })
	}
	return all
}

func (s *site) containment() int {
	s.Helper()
	return agent.Containment(s.abilities())
}

// job waits until wanted returns true for a job, and returns the job.
func (s *site) job(of messages.Name, id messages.JobID, wanted func(job.JobDetail) bool) (j job.JobDetail) {
	s.Helper()
	await.Until(s.T, fmt.Sprintf("job %d goes on", id), func() bool {
		j = ask[job.JobDetail](s, of, messages.Auctioneer, messages.VerbJob, job.JobRequest{Job: id})
		return wanted(j)
	})
	return j
}

// victim starts a job of alice with a secret word wherever a program may have one: files, output, arguments and
// environment. It returns when the task runs.
func (s *site) victim(word string) messages.JobID {
	s.Helper()
	script := fmt.Sprintf(`umask 0; for d in . /dev/shm /tmp /var/tmp; do echo %[1]s > $d/%[1]s; done; echo %[1]s; touch started
SECRET=%[1]s sh -c 'while :; do sleep 1; done' %[1]s`, word)
	reply := ask[job.SubmitReply](s, "alice", messages.Auctioneer, messages.VerbSubmit, job.SubmitRequest{Key: word,
		Spec: job.JobSpec{Budget: 10 * messages.Credit, Stages: []job.Stage{{Name: "main", Script: script}}}})
	await.Until(s.T, "alice's task runs", func() bool {
		for _, h := range s.hosts() {
			files, _ := filepath.Glob(filepath.Join(h.state, "nodes", "*", "jobs", "*", "*", "started"))
			more, _ := filepath.Glob(filepath.Join(h.state, "nodes", "*", "jobs", "*", "*", "*", "started"))
			if len(files)+len(more) > 0 {
				return true
			}
		}
		return false
	})
	return reply.Job
}

// fromInside makes the attempts in a task of bob, on a site where alice's job runs.
func fromInside(t *testing.T, s *site) (attempts []attempt) {
	t.Helper()
	word, mark := fmt.Sprintf("word-%d-of-alice", s.process.Pid), fmt.Sprintf("CANDOR_MARK_%d", s.process.Pid)
	alices := s.victim(word)
	var states, leases []string
	for _, h := range s.hosts() {
		files, _ := filepath.Glob(filepath.Join(h.state, "nodes", "*", "jobs", "*", "lane*.alive"))
		more, _ := filepath.Glob(filepath.Join(h.state, "nodes", "*", "jobs", "*", "*", "lane*.alive"))
		states, leases = append(states, h.state), append(append(leases, files...), more...)
	}
	text, err := json.Marshal(instructions{State: s.state, States: states, Leases: leases, Session: s.session(), Pid: s.process.Pid, Ports: s.ports(), NATS: s.url, Victim: word, Mark: mark,
		Namespaces: map[string]string{"pid": namespace("pid"), "mnt": namespace("mnt")}})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "attack.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nls -l /proc/self/fd >inherited\nexec ./attacker\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := s.candor("bob", "submit", "--script", "--budget", "5", "--chdir", "-", "--input", self+"=attacker", "--attempts", "1",
		"--env", insideEnv+"="+string(text), "--wait", script)
	if err != nil {
		t.Fatalf("bob's attack: %v\n%s\n%s", err, out, tail(s.log.String()))
	}
	if out, err = s.candor("bob", "logs", "2"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, row := range strings.Split(out, "\n") {
		if at := strings.Index(row, `{"What"`); at >= 0 {
			var a attempt
			if err := json.Unmarshal([]byte(row[at:]), &a); err != nil {
				t.Fatalf("%v in %q", err, row)
			}
			if a.Needs == needsApart {
				a.Needs = unprotected
				if slices.Contains(s.abilities(), agent.AbilityApart) {
					a.Needs = 0
				}
			}
			if pid := marked(mark); pid != 0 && strings.Contains(a.What, "outlives") {
				if !slices.Contains(s.abilities(), agent.AbilityFreeze) {
					a.Needs = unprotected // without control groups, a process can leave its session and so outlive its task
				}
				a.Effect = fmt.Sprintf("process %d still runs", pid)
				_ = syscall.Kill(-pid, syscall.SIGKILL)
			}
			if strings.Contains(a.What, "writes into the site's state") {
				a.Effect = s.planted(mark)
			}
			attempts = append(attempts, a)
		}
	}
	if len(attempts) != len(insideAttempts) {
		t.Fatalf("of %d attempts %d were made:\n%s", len(insideAttempts), len(attempts), out)
	}
	if j := s.job("alice", alices, func(job.JobDetail) bool { return true }); j.State != job.Running {
		attempts = append(attempts, attempt{What: "a task harms another account's job", Effect: fmt.Sprintf("it is %v", j.State)})
	}
	ask[job.CancelReply](s, "alice", messages.Auctioneer, messages.VerbCancel, job.CancelRequest{Job: alices})
	return attempts
}

// session listens on the D-Bus socket of the user who runs the site, in place of a login session. It returns the
// socket's path, or "" if the site runs as the user of this process, or if the socket cannot be made.
func (s *site) session() string {
	s.Helper()
	if s.user == nil {
		return ""
	}
	dir := fmt.Sprintf("/run/user/%d", s.user.Uid)
	if err := os.Mkdir(dir, 0o700); err != nil {
		s.Logf("no session is tried: %v", err)
		return ""
	}
	s.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "bus")
	l, err := net.Listen("unix", path)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = l.Close() })
	for _, file := range []string{dir, path} {
		if err := os.Chown(file, int(s.user.Uid), int(s.user.Gid)); err != nil {
			s.Fatal(err)
		}
	}
	return path
}

func (s *site) planted(name string) string {
	var all []string
	for _, h := range s.hosts() {
		files, _ := filepath.Glob(filepath.Join(h.state, name))
		more, _ := filepath.Glob(filepath.Join(h.state, "*", name))
		all = slices.Concat(all, files, more)
	}
	return strings.Join(all, " ")
}

// marked returns the number of a process whose environment has the variable. It returns 0 if there is none.
func marked(variable string) int {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(text), "\x00"+variable+"=") {
			var pid int
			_, _ = fmt.Sscanf(file, "/proc/%d/environ", &pid)
			return pid
		}
	}
	return 0
}

// ports returns the addresses on which the site's processes listen. If the test runs as a user who cannot see them, it
// returns only the address to which users connect.
func (s *site) ports() (addresses []string) {
	mine := map[int]bool{}
	for _, h := range s.hosts() {
		mine[h.process.Pid], mine[h.inner()] = true, true
	}
	inodes := map[string]bool{}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, file := range files {
		var pid int
		_, _ = fmt.Sscanf(file, "/proc/%d/fd/", &pid)
		if !mine[pid] && !mine[parent(pid)] {
			continue
		}
		if target, err := os.Readlink(file); err == nil && strings.HasPrefix(target, "socket:[") {
			inodes[strings.Trim(target, "socket:[]")] = true
		}
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table)
		for _, row := range strings.Split(string(text), "\n") {
			f := strings.Fields(row)
			if len(f) < 10 || f[3] != "0A" || !inodes[f[9]] {
				continue
			}
			_, hex, _ := strings.Cut(f[1], ":")
			var port int
			_, _ = fmt.Sscanf(hex, "%X", &port)
			addresses = append(addresses, fmt.Sprintf("127.0.0.1:%d", port))
		}
	}
	if len(addresses) == 0 {
		addresses = append(addresses, strings.TrimPrefix(s.url, "nats://"))
	}
	return addresses
}
