package attack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/nats-io/nats.go"
	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/lease"
	"github.com/candor-grid/candor/nodeagent/runner/boottime"
)

// If this environment variable is set, the program attacks the site from within a task.
const insideEnv = "CANDOR_ATTACK"

// instructions tell the attacking program in a task where it finds the parts of the site that it must attack.
type instructions struct {
	State  string   // the site's state directory
	States []string // state directories of all hosts of the site
	// Session is the path of the D-Bus socket in the login session of the site's user, or "".
	Session string
	Leases  []string // lease files of other tasks
	Pid     int      // process of the site
	Ports   []string // addresses on which the site's processes listen
	NATS    string   // the address in Ports that is for users
	Victim  string   // a word that only another account's job knows
	Mark    string   // a variable in the environment, with which the test finds what the attack leaves behind
	// Namespaces are the namespaces of the process that started the site. In TestAttackFindsOpenDoors, tasks run as the
	// user of the site, and may share these namespaces. Such a task leaves out the attempts that would harm the
	// machine.
	Namespaces map[string]string
}

// check returns an error if this program was not started by a task of the attacked site. Outside of such a task, the
// attacks would harm the machine.
func (in *instructions) check() error {
	if os.Getenv("CANDOR_TASK") == "" || in.State == "" || in.Pid == 0 || in.Namespaces["pid"] == "" || in.Namespaces["mnt"] == "" {
		return fmt.Errorf("the attacker is started by a task of the attacked site, with instructions, not by hand")
	}
	return nil
}

// shares reports whether the task shares a namespace with the process that started the site, or cannot read the
// namespaces.
func (in *instructions) shares(kind string) bool {
	own := namespace(kind)
	return own == "" || in.Namespaces[kind] == "" || own == in.Namespaces[kind]
}

func namespace(kind string) string {
	link, _ := os.Readlink("/proc/self/ns/" + kind)
	return link
}

// attackFromInside runs all attacks that a task can try, and prints the result of each as JSON.
func attackFromInside(text string) {
	var in instructions
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		panic(err)
	}
	if err := in.check(); err != nil {
		panic(err)
	}
	out := json.NewEncoder(os.Stdout)
	for _, try := range insideAttempts {
		a := attempt{What: "a task " + try.what, Needs: try.needs}
		effect, err := try.do(&in)
		a.Effect = effect
		if err != nil {
			a.Refusal = err.Error()
		}
		_ = out.Encode(a)
	}
}

// insideAttempts are the attempts of a task. The attempts that could harm others come last. Each function returns the
// effect of the attempt, or the error that refused it.
var insideAttempts = []struct {
	what  string
	needs int
	do    func(*instructions) (effect string, refusal error)
}{
	{"inherits open files of the site", 0, inheritsFiles},
	{"reads the site's credentials and keys", 1, reads("creds", "keys")},
	{"reads the logs of the bank and the auctioneer", 1, reads("bank", "auctioneer", "nats")},
	{"reads other files of the site's state", 1, reads("users", "shape.json", "nodes")},
	{"writes into the site's state", 1, writesState},
	{"finds the word of another account's job in its files", 1, findsWord},
	{"finds the word in command lines and environments", needsApart, findsInProcesses},
	{"finds the word in shared memory or temporary files", needsApart, findsShared},
	{"reads the memory of a process that is not its own", 1, readsMemory},
	{"traces a process that is not its own", 1, traces},
	{"ends the site's process", 1, signals},
	{"sends entries by Raft's transport to each port of the site", 0, forgesEntries},
	{"connects to the site's NATS without credentials", 0, connectsBare},
	{"asks the ports of the site for metrics and profiles", 0, asksHTTP},
	{"speaks to its node's executor", 1, speaksToExecutor},
	{"is told of the lease of another's attempt, or of one that it made up", 1, asksAlive},
	{"unmounts what hides the site", 1, unmounts},
	{"makes namespaces of its own", 1, makesNamespaces},
	{"makes namespaces by a call whose flags no filter sees", 1, clonesAnew},
	{"has capabilities", 1, hasCapabilities},
	{"becomes the super-user by a set-user-ID program", 2, becomesRoot},
	{"changes its user to root", 1, setsUser},
	{"has the environment of who runs the site", 2, hasEnvironment},
	{"writes control groups", 1, writesGroups},
	{"opens the machine's memory or settings", 1, opensDevices},
	{"overwrites the program that started it", 2, overwritesProgram},
	{"makes system calls that change the kernel", 1, makesCalls},
	{"writes settings of the kernel", 1, writesSettings},
	{"opens sockets that hear or forge others' packets", 1, makesSockets},
	{"connects to local sockets of the site and of the machine's rulers", 1, reachesSockets},
	{"connects to the session of the user who runs the site", 1, reachesSession},
	{"writes to terminals", 2, writesTerminals},
	{"sees others' queues, semaphores and segments", 1, seesQueues},
	{"changes limits, priorities and processors of others", 1, rulesOthers},
	{"enters the directories, files and namespaces of others", 1, entersOthers},
	{"plants what somebody starts later", 2, plantsStarts},
	{"ends every process that it may", 1, endsAll},
	{"leaves a process that outlives it", 1, leavesProcess},
}

func reads(paths ...string) func(*instructions) (string, error) {
	return func(in *instructions) (effect string, refusal error) {
		for _, p := range paths {
			err := in.walk(p, func(path string, d fs.DirEntry, err error) error {
				if err != nil {
					refusal = err
					return nil
				}
				if own, err := os.Getwd(); err == nil && path == filepath.Dir(own) {
					return fs.SkipDir // the directory of the task's own job
				}
				if d.Type().IsRegular() {
					if _, err := os.ReadFile(path); err == nil {
						effect = "read " + path
						return fs.SkipAll
					} else {
						refusal = err
					}
				}
				return nil
			})
			if err != nil {
				refusal = err
			}
		}
		return effect, refusal
	}
}

// asksAlive asks the task's own lease file whether attempts are alive. The answer for its own attempt must be yes. The
// answer for every other attempt must be no. asksAlive also tries to read the lease files of other tasks.
func asksAlive(in *instructions) (effect string, refusal error) {
	value := os.Getenv(lease.Variable)
	if err := lease.Alive(value, boottime.Now(), 0); err != nil {
		return fmt.Sprintf("its own attempt is none: %v", err), nil
	}
	file := value[:strings.LastIndexByte(value, ':')]
	own := filepath.Dir(file)
	for attempt := range uint32(5) {
		made := lease.Value(file, messages.Attempt{Task: messages.TaskRef{Job: 1}, Number: attempt})
		if refusal = lease.Alive(made, boottime.Now(), 0); refusal == nil {
			return "had a yes for " + made, nil
		}
	}
	for _, path := range in.Leases {
		if _, err := os.ReadFile(path); err == nil && filepath.Dir(path) != own {
			effect = "read " + path
		} else if errors.Is(err, fs.ErrPermission) {
			refusal = err
		}
	}
	return effect, refusal
}

// walk calls look for each file below path in the state directory of each host.
func (in *instructions) walk(path string, look fs.WalkDirFunc) (err error) {
	for _, state := range in.States {
		err = errors.Join(err, filepath.WalkDir(filepath.Join(state, path), look))
	}
	return err
}

// writesState writes files into directories of the site's state. A mounted file system may hide the state in the task,
// so the test looks from outside whether the files are there.
func writesState(in *instructions) (effect string, refusal error) {
	for _, state := range in.States {
		for _, dir := range []string{"", "creds", "keys", "nodes", "bank"} {
			refusal = os.WriteFile(filepath.Join(state, dir, in.Mark), []byte("x"), 0o600)
		}
	}
	return "", refusal
}

// finds searches for the victim's word in the files below some directories.
func finds(word string, directories ...string) (effect string, refusal error) {
	for _, dir := range directories {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				refusal = err
				return nil
			}
			if !d.Type().IsRegular() {
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil {
				refusal = err
			} else if bytes.Contains(text, []byte(word)) && !bytes.Contains(text, []byte(insideEnv)) {
				effect = "read " + path
			}
			return nil
		})
	}
	return effect, refusal
}

func findsWord(in *instructions) (string, error) {
	var nodes []string
	for _, state := range in.States {
		nodes = append(nodes, filepath.Join(state, "nodes"))
	}
	return finds(in.Victim, nodes...)
}

// Another account's job uses a word that only it knows. findsShared looks for this word in the names of shared and
// temporary files. It does not read the files. If it sees such a name, the attack counts as successful, because the
// name is enough to read a file or to learn something.
func findsShared(in *instructions) (effect string, refusal error) {
	for _, dir := range []string{"/dev/shm", "/tmp", "/var/tmp"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			refusal = err
		}
		for _, e := range entries {
			if strings.Contains(e.Name(), in.Victim) {
				effect = "saw " + filepath.Join(dir, e.Name())
			}
		}
	}
	return effect, refusal
}

// others returns the processes that the calling process sees, except itself and its ancestors.
func others() (pids []int) {
	own := map[int]bool{}
	for pid := os.Getpid(); pid > 0; {
		own[pid] = true
		pid = parent(pid)
	}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && !own[pid] {
			pids = append(pids, pid)
		}
	}
	return pids
}

func parent(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	ppid, _ := strconv.Atoi(fields[1])
	return ppid
}

func findsInProcesses(in *instructions) (effect string, refusal error) {
	for _, pid := range others() {
		for _, file := range []string{"cmdline", "environ", "cwd", "root"} {
			path := fmt.Sprintf("/proc/%d/%s", pid, file)
			text, err := os.ReadFile(path)
			if err != nil {
				refusal = err
			}
			if bytes.Contains(text, []byte(in.Victim)) && !bytes.Contains(text, []byte(insideEnv)) {
				effect = "read " + path
			}
		}
	}
	return effect, refusal
}

// targets returns the processes that the program attacks. If the task shares the machine's process numbers, these are
// only the site's process and the program's own parent, because the other processes are not part of the test.
func (in *instructions) targets() []int {
	if in.shares("pid") {
		return []int{in.Pid, os.Getppid()}
	}
	return append(others(), in.Pid, os.Getppid(), 1)
}

func readsMemory(in *instructions) (effect string, refusal error) {
	for _, pid := range in.targets() {
		f, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
		if err == nil {
			effect = "opened the memory of process " + name(pid)
			_ = f.Close()
		} else {
			refusal = err
		}
		local := []unix.Iovec{{Base: new(byte), Len: 1}}
		if _, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: 0x400000, Len: 1}}, 0); err == nil || err == unix.EFAULT {
			effect = "may read the memory of process " + name(pid)
		}
	}
	return effect, refusal
}

func name(pid int) string {
	comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return fmt.Sprintf("%d (%s)", pid, strings.TrimSpace(string(comm)))
}

func traces(in *instructions) (effect string, refusal error) {
	for _, pid := range in.targets() {
		if err := unix.PtraceSeize(pid); err == nil {
			return "traces process " + name(pid), nil
		} else {
			refusal = err
		}
	}
	return "", refusal
}

func signals(in *instructions) (effect string, refusal error) {
	if refusal = unix.Kill(in.Pid, 0); refusal == nil {
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", in.Pid))
		if strings.HasPrefix(string(comm), "candor") { // the number could also belong to a process of the task
			return "may end process " + name(in.Pid), nil
		}
	}
	return "", refusal
}

type intruder struct{ net.Listener }

func (intruder) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (intruder) Close() error              { return nil }
func (intruder) Addr() net.Addr            { return &net.TCPAddr{} }
func (intruder) Dial(to raft.ServerAddress, within time.Duration) (net.Conn, error) {
	return net.DialTimeout("tcp", string(to), within)
}

// forgesEntries sends Raft log entries to each port, as a leader with a high term would.
func forgesEntries(in *instructions) (effect string, refusal error) {
	transport := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: intruder{}, MaxPool: 1, Timeout: time.Second, Logger: hclog.NewNullLogger(), MsgpackUseNewTimeFormat: true})
	defer transport.Close()
	leader := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("1"), Addr: []byte("1")}
	request := raft.AppendEntriesRequest{RPCHeader: leader, Term: 1 << 40,
		Entries: []*raft.Log{{Index: 1, Term: 1 << 40, Type: raft.LogCommand, Data: []byte("a forged grant")}}, LeaderCommitIndex: 1}
	for _, port := range in.Ports {
		var answer raft.AppendEntriesResponse
		if refusal = transport.AppendEntries("1", raft.ServerAddress(port), &request, &answer); refusal == nil {
			return fmt.Sprintf("%s answered with term %d", port, answer.Term), nil
		}
	}
	return "", refusal
}

func connectsBare(in *instructions) (string, error) {
	for _, option := range []nats.Option{nats.Name("anybody"), nats.UserInfo("operator", "operator"), nats.Token("operator")} {
		nc, err := nats.Connect(in.NATS, option, nats.NoReconnect())
		if err == nil {
			nc.Close()
			return "connected", nil
		}
		if option = nil; err != nil && !strings.Contains(err.Error(), "uthorization") {
			return "", err
		}
	}
	return "", nats.ErrAuthorization
}

func asksHTTP(in *instructions) (effect string, refusal error) {
	client := http.Client{Timeout: time.Second}
	for _, port := range in.Ports {
		for _, path := range []string{"/metrics", "/debug/pprof/heap", "/varz", "/"} {
			reply, err := client.Get("http://" + port + path)
			if err != nil {
				refusal = err
				continue
			}
			_ = reply.Body.Close()
			if refusal = fmt.Errorf("%s%s: %s", port, path, reply.Status); reply.StatusCode == http.StatusOK {
				effect = port + path + " answers"
			}
		}
	}
	return effect, refusal
}

func speaksToExecutor(in *instructions) (effect string, refusal error) {
	sockets, _ := filepath.Glob(filepath.Join(in.State, "nodes", "*", "executor.sock"))
	for node := 1; node <= 4; node++ {
		sockets = append(sockets, filepath.Join(in.State, "nodes", fmt.Sprint("node", node), "executor.sock"))
	}
	table, _ := os.ReadFile("/proc/net/unix")
	for _, row := range strings.Split(string(table), "\n") {
		if f := strings.Fields(row); len(f) == 8 && in.isOfSite(f[7]) {
			sockets = append(sockets, f[7])
		}
	}
	for _, socket := range sockets {
		c, err := net.DialTimeout("unix", socket, time.Second)
		if refusal = err; err == nil {
			_ = c.Close()
			return "connected to " + socket, nil
		}
	}
	return "", refusal
}

// isOfSite reports whether a socket belongs to the attacked site. Other sockets of the machine are left alone.
func (in *instructions) isOfSite(path string) bool {
	return slices.ContainsFunc(in.States, func(state string) bool { return strings.Contains(path, state) })
}

func unmounts(in *instructions) (effect string, refusal error) {
	if in.shares("mnt") {
		if os.Geteuid() == 0 {
			return "has the mounts of the machine, and is user 0", nil
		}
		return "", fmt.Errorf("is in no namespace in which anything is hidden")
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	for _, row := range strings.Split(string(table), "\n") {
		f := strings.Fields(row)
		if len(f) < 5 {
			continue
		}
		hides := f[4] == in.State || strings.HasPrefix(in.State, f[4]+"/") || f[4] == "/tmp" || f[4] == "/proc"
		if !hides {
			continue
		}
		if refusal = unix.Unmount(f[4], unix.MNT_DETACH); refusal == nil {
			effect = "unmounted " + f[4]
		}
	}
	if refusal == nil && effect == "" {
		refusal = unix.Unmount("/", unix.MNT_DETACH)
	}
	return effect, refusal
}

func makesNamespaces(*instructions) (string, error) {
	var refusal error
	for what, flags := range map[string]uintptr{"user": unix.CLONE_NEWUSER, "user and mount": unix.CLONE_NEWUSER | unix.CLONE_NEWNS, "mount": unix.CLONE_NEWNS, "pid": unix.CLONE_NEWPID} {
		command := exec.Command("/bin/true")
		command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		if refusal = command.Run(); refusal == nil {
			return "made a " + what + " namespace", nil
		}
	}
	return "", refusal
}

func hasCapabilities(*instructions) (effect string, refusal error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "", err
	}
	for _, row := range strings.Split(string(status), "\n") {
		switch f := strings.Fields(row); {
		case len(f) == 2 && strings.HasPrefix(f[0], "Cap") && strings.Trim(f[1], "0") != "":
			effect = row
		case row == "NoNewPrivs:\t0":
			effect = "may gain privileges"
		}
	}
	return effect, fmt.Errorf("none in any set")
}

// becomesRoot runs set-user-ID programs that print their user, if the machine has any.
func becomesRoot(*instructions) (string, error) {
	for _, try := range [][]string{{"su", "-c", "id -u"}, {"sudo", "-n", "id", "-u"}, {"pkexec", "id", "-u"}} {
		command := exec.Command(try[0], try[1:]...)
		command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without a terminal to ask for a password
		out, err := command.Output()
		if err == nil && strings.TrimSpace(string(out)) == "0" {
			return try[0] + " gives a shell of user 0", nil
		}
	}
	return "", fmt.Errorf("no new privileges")
}

func setsUser(*instructions) (string, error) {
	if os.Geteuid() == 0 {
		return "is user 0", nil
	}
	if err := syscall.Setresuid(0, 0, 0); err != nil {
		return "", err
	}
	return "became user 0", nil
}

func inheritsFiles(in *instructions) (effect string, refusal error) {
	list, err := os.ReadFile("inherited") // written by the script that started this program
	if err != nil {
		return "", err
	}
	for _, row := range strings.Split(string(list), "\n") {
		link, target, found := strings.Cut(row, " -> ")
		fd, _ := strconv.Atoi(link[strings.LastIndex(link, " ")+1:])
		if found && fd > 2 && !strings.HasPrefix(target, "/proc/") {
			effect += fmt.Sprintf("%d is %s; ", fd, target)
		}
	}
	return effect, fmt.Errorf("standard input, output and error alone")
}

func hasEnvironment(*instructions) (effect string, refusal error) {
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		secret := strings.Contains(name, "SECRET") && strings.Contains(value, "of-who-runs-the-site")
		if secret || name == "HOME" && value == "/root" || (name == "USER" || name == "LOGNAME") && value == "root" {
			effect = variable
		}
	}
	return effect, fmt.Errorf("a task has HOME, USER and PATH of its own")
}

func writesGroups(*instructions) (effect string, refusal error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for _, row := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		parts := strings.SplitN(row, ":", 3)
		dir := filepath.Join("/sys/fs/cgroup", parts[1], parts[2])
		for _, file := range []string{"memory.max", "memory.limit_in_bytes", "pids.max", "cgroup.procs", "cgroup.kill", "cgroup.freeze"} {
			f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
			if err == nil {
				_ = f.Close()
				return "may write " + filepath.Join(dir, file), nil
			}
			refusal = err
		}
	}
	return "", refusal
}

func opensDevices(*instructions) (effect string, refusal error) {
	for _, path := range []string{"/dev/mem", "/dev/kmem", "/proc/kcore", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/etc/passwd", "/dev/kmsg"} {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if refusal = err; err == nil {
			_ = f.Close()
			return "may write " + path, nil
		}
	}
	return "", refusal
}

func overwritesProgram(in *instructions) (effect string, refusal error) {
	for _, pid := range append(in.targets(), os.Getppid()) {
		f, err := os.OpenFile(fmt.Sprintf("/proc/%d/exe", pid), os.O_WRONLY, 0)
		if refusal = err; err == nil || errors.Is(err, unix.ETXTBSY) { // only a process that may write gets this error
			if err == nil {
				_ = f.Close()
			}
			return "may write the program of " + name(pid), nil
		}
	}
	return "", refusal
}

// makesCalls makes system calls that no task may make, with invalid arguments. If the error is about the arguments, the
// kernel has looked at them, and no filter has refused the call.
func makesCalls(*instructions) (effect string, refusal error) {
	for what, number := range map[string]uintptr{"bpf": unix.SYS_BPF, "perf_event_open": unix.SYS_PERF_EVENT_OPEN, "init_module": unix.SYS_INIT_MODULE,
		"kexec_load": unix.SYS_KEXEC_LOAD, "mount": unix.SYS_MOUNT, "add_key": unix.SYS_ADD_KEY, "keyctl": unix.SYS_KEYCTL, "pivot_root": unix.SYS_PIVOT_ROOT,
		"request_key": unix.SYS_REQUEST_KEY, "userfaultfd": unix.SYS_USERFAULTFD, "io_uring_setup": unix.SYS_IO_URING_SETUP,
		"open_by_handle_at": unix.SYS_OPEN_BY_HANDLE_AT, "fanotify_init": unix.SYS_FANOTIFY_INIT, "quotactl": unix.SYS_QUOTACTL, "syslog": unix.SYS_SYSLOG} {
		_, _, errno := unix.Syscall6(number, math.MaxUint32, 0, 0, 0, 0, 0)
		if errno != unix.EPERM && errno != unix.ENOSYS && errno != unix.EACCES {
			effect += fmt.Sprintf("%s: %v; ", what, errno)
		}
		refusal = errno
	}
	return effect, refusal
}

// endsAll is an attack from a task: it ends all processes that the task can see, except itself. It does nothing if the
// task can see the processes of the machine.
func endsAll(in *instructions) (string, error) {
	if in.shares("pid") {
		return "", fmt.Errorf("not tried where the machine's processes are")
	}
	return "", unix.Kill(-1, unix.SIGKILL) // the test sees from outside whether another account's task has ended
}

// leavesProcess starts a process in a separate session. The test sees from outside whether it outlives the task.
func leavesProcess(in *instructions) (string, error) {
	command := exec.Command("/bin/sh", "-c", "trap '' HUP TERM INT; sleep 600 & wait; sleep 600")
	command.Env = append(os.Environ(), in.Mark+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return "", err
	}
	return "", fmt.Errorf("ended with its task")
}
