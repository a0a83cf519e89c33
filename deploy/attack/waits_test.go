package attack

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// The attempts below try to slow down the node with tasks of one account. During an attempt, a task of another account
// may start at most a second later than without the attempt.

// heldUp is the longest delay that an attacker may cause for the start of another account's task.
const heldUp = time.Second

// If this variable is set, the program is a task that slows down the node.
const holdEnv = "CANDOR_HOLD"

// held is the configuration of a site with slots for all tasks on one node.
const held = `site: west
accounts: [{name: alice, grant: 1000}, {name: bob, grant: 1000}]
operators: [operator]
markets: [{name: main, mechanism: proportional, classes: [map]}]
nodes: [{name: node1, slots: {map: 12}}]
`

// A task takes a lease of the kernel (F_SETLEASE) on this file. The task sees the file in the namespaces of its
// account.
const leased = "/tmp/candor-attack-leased"

// holds are programs for tasks that try to block the node. Each program prints a line when the attack has begun.
var holds = map[string]func(){
	"stops": func() {
		fmt.Println("begun")
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
			_ = unix.Kill(-1, unix.SIGSTOP)
		}
	},
	"lease": func() {
		text, err := os.ReadFile("/bin/true")
		if err == nil {
			err = os.WriteFile(leased, text, 0o755)
		}
		signal.Ignore(unix.SIGIO)
		f, openErr := os.OpenFile(leased, os.O_WRONLY, 0)
		if err == nil && openErr == nil {
			_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
		}
		fmt.Println("begun", err, openErr)
		time.Sleep(time.Minute)
		runtime.KeepAlive(f)
	},
	"backlog": func() {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			fmt.Println(err)
			return
		}
		raw, _ := listener.(*net.TCPListener).SyscallConn()
		_ = raw.Control(func(fd uintptr) { _ = unix.Listen(int(fd), 0) })
		for range 4 {
			if c, err := net.DialTimeout("tcp4", listener.Addr().String(), 100*time.Millisecond); err == nil {
				defer c.Close()
			}
		}
		fmt.Println("begun", listener.Addr().(*net.TCPAddr).Port)
		time.Sleep(time.Minute)
		runtime.KeepAlive(listener)
	},
	"listens": func() {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("begun", listener.Addr().(*net.TCPAddr).Port)
		for {
			if c, err := listener.Accept(); err == nil {
				_, _ = c.Write([]byte("of bob"))
				_ = c.Close()
			}
		}
	},
	"forks": func() {
		fmt.Println("begun")
		for end := time.Now().Add(time.Minute); time.Now().Before(end); {
			c := exec.Command("/bin/sh", "-c", "(sleep 0.2 &) ; exit")
			_ = c.Run()
		}
	},
	"files": func() {
		for i := range 100_000 {
			if f, err := os.Create(fmt.Sprint("empty", i)); err == nil {
				_ = f.Close()
			}
		}
		fmt.Println("begun")
	},
	"links": func() {
		for i := range 30 {
			_ = os.Symlink(".", fmt.Sprint("l", i))
		}
		fmt.Println("begun")
	},
	"passdir": passDir, "writeon": writeOn, "passmemory": passMemory, "keep": keep, "segment": leaveSegment, "empty": makeEmpty, "daemons": daemons,
	"threads": func() { multiply(8, threads) }, "thread500": thread500, "zombies": func() { multiply(1000, zombie) },
	"buffers": func() {
		fillBuffers(1024, func([]int) {})
		time.Sleep(time.Minute)
	},
	"passbuffers": func() {
		fillBuffers(256, func(fds []int) {
			if err := pass(fds[:min(len(fds), 250)]...); err != nil {
				fmt.Println(err)
			}
		})
	},
}

func holdUp(name string) {
	if os.Getenv("CANDOR_TASK") == "" {
		panic("is started by a task of the attacked site, not by hand")
	}
	holds[name]()
}

// Each of these attacks has two parts. First a task of bob slows down the node, and prints a line. Then the function in
// the field of type func runs.
var holdUps = []struct {
	name, what string
	needs      int // the attack needs this containment; without it, the attacker could stop the site itself
	arguments  []string
	beside     func(s *site, job messages.JobID, said string)
}{
	{"stops", "stops the processes that the node starts beside it", 1, nil, func(s *site, _ messages.JobID, _ string) {
		s.bobs(jobmsg.Stage{Name: "main", Command: []string{"true"}, Tasks: 60, MaxRunning: 3, Attempts: 1})
	}},
	{"lease", "has a lease on the program that the node starts", 0, nil, func(s *site, _ messages.JobID, _ string) {
		s.bobs(jobmsg.Stage{Name: "main", Command: []string{leased}, Tasks: 3, Attempts: 1})
	}},
	{"backlog", "has a port that accepts nobody", 0, nil, func(s *site, job messages.JobID, said string) { s.forwards(job, said) }},
	{"links", "has outputs that a pattern finds without end", 0, []string{"--output", "*/*/*/*/*"}, func(*site, messages.JobID, string) {}},
	{"forks", "starts processes while it is ended", 0, nil, func(s *site, job messages.JobID, _ string) { s.cancels(job) }},
	{"files", "leaves very many empty files", 0, nil, func(*site, messages.JobID, string) {}},
}

func (s *site) bobs(stage jobmsg.Stage) {
	s.Helper()
	ask[jobmsg.SubmitReply](s, "bob", messages.Auctioneer, messages.VerbSubmit, jobmsg.SubmitRequest{Key: fmt.Sprint(time.Now().UnixNano()),
		Spec: jobmsg.JobSpec{Budget: messages.Credit, Stages: []jobmsg.Stage{stage}}})
}

func (s *site) cancels(job messages.JobID) {
	s.Helper()
	_, _ = bus.Call[jobmsg.CancelReply](s.within(), s.client("bob"), messages.Subject(s.name, messages.Auctioneer, messages.VerbCancel, "bob"), jobmsg.CancelRequest{Job: job})
}

func (s *site) forwards(job messages.JobID, said string) {
	s.Helper()
	at := s.forwarding("bob", job, said)
	for range 6 {
		if c, err := net.DialTimeout("tcp", at, patience); err == nil {
			s.Cleanup(func() { _ = c.Close() })
		}
	}
}

// takesPort connects alice to a port of her own task, on which her task does not listen. A task of bob listens on the
// same port of the node. The argument `said` has the port. Bob's task must not get alice's connection.
func (s *site) takesPort(said string) attempt {
	s.Helper()
	a := attempt{What: "a task has the connections to a port of another account's task"}
	reply := ask[jobmsg.SubmitReply](s, "alice", messages.Auctioneer, messages.VerbSubmit, jobmsg.SubmitRequest{Key: "port",
		Spec: jobmsg.JobSpec{Budget: messages.Credit, Stages: []jobmsg.Stage{{Name: "main", Command: []string{"sleep", "60"}, Attempts: 1}}}})
	s.job("alice", reply.Job, func(j jobmsg.JobDetail) bool { return j.Running == 1 })
	c, err := net.DialTimeout("tcp", s.forwarding("alice", reply.Job, said), patience)
	if err != nil {
		s.Fatal(err)
	}
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	answer, err := io.ReadAll(c)
	if len(answer) > 0 {
		a.Effect = fmt.Sprintf("alice reads %q", answer)
	}
	a.Refusal = fmt.Sprintf("the connection was closed, %v", err)
	return a
}

// forwarding runs "candor port" as an account, so that a local address leads to a port of the job. The job has printed
// the text `said`, whose second word is the number of this port. forwarding returns the local address.
func (s *site) forwarding(account messages.Name, job messages.JobID, said string) string {
	s.Helper()
	path, err := binary()
	if err != nil {
		s.Fatal(err)
	}
	port := strings.Fields(said)[1]
	command := exec.CommandContext(s.within(), path, "port", job.String(), "0:"+port, "--state", s.state, "--account", account)
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	line, _ := bufio.NewReader(out).ReadString('\n')
	fields := strings.Fields(line) // Forwarding 127.0.0.1:40000 to port …
	if len(fields) < 2 {
		s.Fatalf("candor port said %q", line)
	}
	return fields[1]
}

func fromHoldUps(t *testing.T, s *site) (attempts []attempt) {
	t.Helper()
	h := s.holder()
	for _, up := range holdUps {
		if up.needs > s.containment() {
			attempts = append(attempts, attempt{What: "a task " + up.what, Needs: up.needs, Effect: "not tried, as it could stop the site itself"})
			continue
		}
		job, said := h.begin(up.name, up.arguments...)
		up.beside(s, job, said)
		a := h.measured("a task " + up.what)
		a.Needs = up.needs
		h.over(job)
		attempts = append(attempts, a)
	}
	job, said := h.begin("listens")
	attempts = append(attempts, s.takesPort(said))
	s.cancels(job)
	return append(attempts, s.goesOn())
}

// holder slows down a site with bob's tasks. Without bob's tasks, alice's tasks would start at once.
type holder struct {
	*site
	alice  bus.Bus
	rest   time.Duration // time that alice's tasks take without an attack
	script string
	self   string

	said     []string       // texts that the tasks of an attempt have printed
	ended    messages.JobID // a job of the attempt that has ended
	entities int            // number of processes and threads before the attempt
}

func (s *site) holder() *holder {
	s.Helper()
	h := &holder{site: s, alice: s.client("alice"), script: filepath.Join(s.TempDir(), "hold.sh")}
	h.rest = s.starts(h.alice)
	var err error
	if h.self, err = os.Executable(); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(h.script, []byte("#!/bin/sh\nexec ./attacker\n"), 0o755); err != nil {
		s.Fatal(err)
	}
	return h
}

// begin starts a task of bob that runs a program. It waits until the program has begun, and returns what the program
// has printed.
func (h *holder) begin(name string, arguments ...string) (job messages.JobID, said string) {
	h.Helper()
	job = h.submits(name, arguments...)
	await.Until(h.T, "the task of bob's says that it has begun: "+name, func() bool {
		said, _ = h.candor("bob", "logs", job.String())
		return strings.Contains(said, "begun")
	})
	return job, said[strings.Index(said, "begun"):]
}

func (h *holder) submits(name string, arguments ...string) (job messages.JobID) {
	h.Helper()
	out, err := h.candor("bob", append(append([]string{"submit", "--script", "--budget", "5", "--chdir", "-", "--input", h.self + "=attacker", "--attempts", "1", "--time", "60s",
		"--env", holdEnv + "=" + name, "--id-only"}, arguments...), h.script)...)
	if _, scanErr := fmt.Sscan(out, &job); err != nil || scanErr != nil {
		h.Fatalf("%s: %v, %v: %s", name, err, scanErr, out)
	}
	return job
}

func (h *holder) measured(what string) attempt {
	h.Helper()
	a := attempt{What: what}
	worst := h.starts(h.alice)
	a.Refusal = fmt.Sprintf("another's task started and ended within %v, and %v before", worst.Round(time.Millisecond), h.rest.Round(time.Millisecond))
	if worst > h.rest+heldUp {
		a.Effect, a.Refusal = a.Refusal, ""
	}
	return a
}

func (h *holder) runs(name string) {
	h.Helper()
	out, _ := h.candor("bob", "submit", "--script", "--budget", "5", "--chdir", "-", "--input", h.self+"=attacker", "--attempts", "1", "--time", "60s",
		"--env", holdEnv+"="+name, "--wait", "--id-only", h.script)
	id, _, _ := strings.Cut(out, "\n")
	said, _ := h.candor("bob", "logs", id)
	h.said = append(h.said, said)
}

// This method ends a job of bob, the attacker. It may disturb bob's next task, but the test does not check bob's tasks.
func (h *holder) over(job messages.JobID) {
	h.Helper()
	h.cancels(job)
	h.job("bob", job, func(j jobmsg.JobDetail) bool { return j.Running == 0 })
}

// This method returns how long a short job of alice takes, from submission to end. It returns the second longest of
// several times, because the longest may only show that the machine was busy.
func (s *site) starts(b bus.Bus) time.Duration {
	s.Helper()
	var all []time.Duration
	for range 8 {
		all = append(all, s.startOne(b))
	}
	slices.Sort(all)
	return all[len(all)-2]
}

// startOne runs a short job of alice and returns how long it took. It repeats a submission that is refused for lack of
// space.
func (s *site) startOne(b bus.Bus) time.Duration {
	s.Helper()
	began := time.Now()
	var job messages.JobID
	await.Until(s.T, "alice's job is taken", func() bool {
		reply, err := bus.Call[jobmsg.SubmitReply](s.within(), b, messages.Subject(s.name, messages.Auctioneer, messages.VerbSubmit, "alice"), jobmsg.SubmitRequest{Key: fmt.Sprint(began.UnixNano()),
			Spec: jobmsg.JobSpec{Budget: messages.Credit, Stages: []jobmsg.Stage{{Name: "main", Command: []string{"true"}, Attempts: 1}}}})
		if err != nil && messages.KindOf(err) != messages.Exhausted {
			s.Fatal(err)
		}
		job = reply.Job
		return err == nil
	})
	await.Until(s.T, "alice's job ends", func() bool {
		j, err := bus.Call[jobmsg.JobDetail](s.within(), b, messages.Subject(s.name, messages.Auctioneer, messages.VerbJob, "alice"), jobmsg.JobRequest{Job: job})
		return err == nil && j.State.Final()
	})
	return time.Since(began)
}

// forms has the ways in which a site is started for the attacks. In the form "stock", the default, each account has a
// separate user and a separate room (a set of namespaces). "make attack" adds four forms.
var forms = map[string]struct {
	user  *syscall.Credential
	start func(t *testing.T, state, config string) *site
}{
	"stock":         {nil, func(t *testing.T, state, config string) *site { return upIn(t, state, nil, "--config", config) }},
	"namespaces":    {nil, func(t *testing.T, state, config string) *site { return upIn(t, state, nil, "--config", config) }},
	"ordinary user": {ordinary, func(t *testing.T, state, config string) *site { return upIn(t, state, ordinary, "--config", config) }},
	"users alone":   {nil, func(t *testing.T, state, config string) *site { return upContainedIn(t, state, "--config", config) }},
	"plain": {nil, func(t *testing.T, state, config string) *site {
		return upIn(t, state, nil, "--tasks-as-me", "--config", config)
	}},
}

func eachForm(t *testing.T, attack func(t *testing.T, start func(t *testing.T, state, tasks string) *site, user *syscall.Credential)) {
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			switch {
			case name != "stock" && !everything():
				t.Skip("only in make attack")
			case name == "ordinary user" && os.Geteuid() != 0:
				t.Skip("every test here is that")
			}
			attack(t, func(t *testing.T, state, tasks string) *site {
				if name == "namespaces" {
					tasks += ", namespaces: allow"
				}
				s := form.start(t, state, roomy(t, strings.TrimPrefix(tasks, ", ")))
				s.nodes = 1
				return s
			}, form.user)
		})
	}
}

// roomy writes the configuration of a site with slots for all tasks, and with settings for tasks.
func roomy(t *testing.T, tasks string) string {
	t.Helper()
	file := filepath.Join(scratch, fmt.Sprintf("held%d.yaml", time.Now().UnixNano()))
	if err := os.WriteFile(file, []byte(held+"tasks: {"+tasks+"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAttackByWaiting(t *testing.T) {
	eachForm(t, func(t *testing.T, start func(t *testing.T, state, tasks string) *site, user *syscall.Credential) {
		s := start(t, stateDir(t, user), "")
		s.judge(fromHoldUps(t, s))
	})
}
