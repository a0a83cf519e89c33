package runner_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/access"
	"github.com/candor-grid/candor/nodeagent/runner/room"
)

// If the first argument is "inside", the test binary prepares the namespaces of a task (a room). If it is "attack", the
// test binary is the attacker in a task. Otherwise it runs the tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "inside" {
		if err := room.Inside(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "attack" {
		attack()
		return
	}
	if len(os.Args) > 2 && os.Args[1] == "delay" {
		delay(os.Args[2], os.Args[3:])
		return
	}
	os.Exit(m.Run())
}

// attack tries system calls that no task may make, and prints the calls that worked.
func attack() {
	var sets [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if unix.Capget(&header, &sets[0]) != nil || sets != [2]unix.CapUserData{} {
		fmt.Println("it has capabilities:", sets)
	}
	for c := uintptr(0); c < 40; c++ {
		if has, _ := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0); has == 1 {
			fmt.Println("in its bounding set:", c)
		}
		if has, _ := unix.PrctlRetInt(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_IS_SET, c, 0, 0); has == 1 {
			fmt.Println("in its ambient set:", c)
		}
	}
	if no, _ := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); no != 1 {
		fmt.Println("it may gain privileges")
	}
	_, keyErr := unix.KeyctlInt(unix.KEYCTL_GET_KEYRING_ID, unix.KEY_SPEC_SESSION_KEYRING, 1, 0, 0)
	_, _, bpf := unix.RawSyscall(unix.SYS_BPF, 0, 0, 0)
	_, _, module := unix.RawSyscall(unix.SYS_INIT_MODULE, 0, 0, 0)
	_, _, perf := unix.RawSyscall(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0)
	_, _, i386 := unix.RawSyscall(0x40000000, 0, 0, 0)
	for what, err := range map[string]error{
		"mount": unix.Mount("x", "/tmp", "tmpfs", 0, ""), "unmount /proc": unix.Unmount("/proc", unix.MNT_DETACH),
		"unmount /tmp": unix.Unmount("/tmp", unix.MNT_DETACH), "user namespace": unix.Unshare(unix.CLONE_NEWUSER),
		"user namespace by clone3": clonesAnew(), "the hypervisor": opensSocket(unix.AF_VSOCK), "ciphers": opensSocket(unix.AF_ALG),
		"mount namespace": unix.Unshare(unix.CLONE_NEWNS), "change root": unix.Chroot("/"), "keys": keyErr,
		"bpf": is(bpf), "module": is(module), "perf": is(perf), "another architecture": is(i386),
		"become root": unix.Setuid(0), "trace the holder": unix.PtraceAttach(1), "kill the holder": kills(),
		"/dev/mem": opens("/dev/mem"), "/proc/1/root": opens("/proc/1/root"), "/proc/1/mem": opens("/proc/1/mem"),
		"/proc/1/environ": opens("/proc/1/environ"), "/proc/sysrq-trigger": writes("/proc/sysrq-trigger"),
		"control groups": writes("/sys/fs/cgroup/cgroup.procs"), "unified groups": writes("/sys/fs/cgroup/unified/cgroup.procs"),
	} {
		if err == nil {
			fmt.Println("it worked:", what)
		}
	}
	fmt.Println("done")
}

// clonesAnew makes a child process in a new user namespace with the system call clone3, and returns nil if this worked.
// A filter of system calls cannot see the flags of clone3. So it can forbid clone3 only completely, and not only for
// new namespaces.
func clonesAnew() error {
	arguments := struct{ flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls uint64 }{flags: unix.CLONE_NEWUSER, exitSignal: uint64(unix.SIGCHLD)}
	pid, _, errno := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&arguments)), unsafe.Sizeof(arguments), 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 { // this is the child; it must not use the Go runtime
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	_, _ = unix.Wait4(int(pid), nil, 0, nil)
	return nil
}

func opensSocket(family int) error {
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err == unix.ESOCKTNOSUPPORT { // the kernel knows this family of sockets
		return nil
	}
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

// kills sends a SIGKILL to process 1 of the room. It returns nil if this process has then ended, that is, if the attack
// has worked.
func kills() error {
	_ = unix.Kill(1, unix.SIGKILL)
	if unix.Kill(1, 0) == unix.ESRCH {
		return nil
	}
	return unix.EPERM
}

func is(e error) error {
	if e == unix.Errno(0) || e == unix.EFAULT || e == unix.EINVAL { // the kernel has accepted the call
		return nil
	}
	return e
}

func opens(path string) error {
	f, err := os.Open(path)
	if err == nil {
		_, err = f.Read(make([]byte, 1))
		f.Close()
	}
	return err
}

func writes(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		f.Close()
	}
	return err
}

// strangers returns a bench that runs tasks in separate namespaces, each as a Linux user from a range. It skips the
// test if the machine cannot do this.
func strangers(t *testing.T, change func(*runner.Config)) *bench {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	b := newBench(t, func(c *runner.Config) {
		c.User, c.Apart, c.Inside = "100000-165535", true, []string{os.Args[0], "inside"}
		state := filepath.Join(c.Dir, "state")
		if err := os.MkdirAll(state, 0o700); err != nil {
			t.Fatal(err)
		}
		c.Dir, c.Hide = filepath.Join(state, "node"), []string{state}
		if change != nil {
			change(c)
		}
	})
	if !b.can(agent.AbilityApart) {
		t.Skip("needs namespaces: ", b.Lacks())
	}
	return b
}

func of(account messages.Name, job messages.JobID, p agent.Program) agent.Program {
	p.Account, p.Job = account, job
	return p
}

// openDir returns a directory that all users can use. It has a copy of the attacker's program. Only root may use the
// directories above it.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(dir, "attack"), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestTasksHaveNoPowers runs an attacker's program in tasks of several kinds. No task may have capabilities. System
// calls that only an administrator may make must fail in every task.
func TestTasksHaveNoPowers(t *testing.T) {
	public := "/var/tmp"
	dir, err := os.MkdirTemp(public, "candor")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	work := openDir(t)
	for at := work; at != dir && len(at) > len(dir); at = filepath.Dir(at) {
		os.Chmod(at, 0o755)
	}
	for name, change := range map[string]func(*runner.Config){
		"apart": nil, "private": func(c *runner.Config) { c.Private = true },
		"users alone": func(c *runner.Config) { c.Apart = false }, "as root": func(c *runner.Config) { c.User, c.Apart = "", false },
		"one user, apart": func(c *runner.Config) { c.User = "nobody" },
	} {
		t.Run(name, func(t *testing.T) {
			var b *bench
			if strings.Contains(name, "apart") || name == "private" {
				b = strangers(t, change)
			} else if b = newBench(t, func(c *runner.Config) { c.User, c.Dir = "100000-165535", filepath.Join(dir, "alone"); change(c) }); os.Geteuid() != 0 {
				t.Skip("needs root")
			}
			s := b.start(agent.Program{Command: []string{filepath.Join(work, "attack"), "attack"}, Dir: work, Account: "ann", Job: 7})
			if f := s.wait(); f.ExitCode != 0 || f.Outcome != agent.Exited {
				t.Fatalf("%+v: %s", f, b.read(s, true))
			}
			got := b.read(s, false)
			if name == "as root" || name == "users alone" { // these tasks are started by clone3, and have no room that refuses it
				got = strings.Replace(got, "it worked: user namespace by clone3\n", "", 1)
			}
			if name == "as root" { // root may do all this
				got = strings.NewReplacer("it worked: control groups\n", "", "it worked: unified groups\n", "", "it worked: /proc/sysrq-trigger\n", "",
					"it worked: become root\n", "", "it worked: kill the holder\n", "", "it worked: /dev/mem\n", "").Replace(got)
			}
			if got != "done\n" {
				t.Error(got)
			}
		})
	}
}

// TestUsersPassThroughTheState runs tasks as other users without namespaces, as in a container. They must be able to
// use working directories below the site's state, but not to read the state.
func TestUsersPassThroughTheState(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	state := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	for at := filepath.Dir(state); at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b := newBench(t, func(c *runner.Config) {
		c.User, c.Dir, c.Hide = "100000-165535", filepath.Join(state, "node"), []string{state}
	})
	s := b.start(of("ann", 7, sh("pwd; ls "+filepath.Dir(b.dir)+" || true")))
	if f := s.wait(); f.Outcome != agent.Exited || f.ExitCode != 0 || strings.Count(b.read(s, false), "\n") != 1 {
		t.Errorf("%+v: %q %q", f, b.read(s, false), b.read(s, true))
	}
}

// TestAccountsAreApart checks that a task finds nothing of another account: no processes, shared memory, files or
// output.
func TestAccountsAreApart(t *testing.T) {
	b := strangers(t, nil)
	secret := filepath.Join(filepath.Dir(b.dir), "creds")
	if err := os.WriteFile(secret, []byte("key"), 0o644); err != nil {
		t.Fatal(err)
	}
	ann := b.start(of("ann", 7, sh("umask 0; echo mine | tee file /tmp/file /var/tmp/file /dev/shm/file >/dev/null; echo up; exec sleep 987654")))
	if got := b.read(ann, false); got != "up\n" {
		t.Fatalf("%q %q", got, b.read(ann, true))
	}
	lanes := b.dir + "/jobs/ann"
	if !b.can(agent.AbilityFreeze) { // without control groups, the files are in the directory of the job
		lanes += "/7"
	}
	for _, file := range []string{lanes + "/lane1.dir/file", lanes + "/lane1.out", b.dir + "/jobs/ann/7"} { // check that these files exist; otherwise the loop below would test nothing
		if _, err := os.Stat(file); err != nil {
			t.Fatal(err)
		}
	}
	tries := []string{
		"cat " + lanes + "/lane1.dir/file", "cat " + lanes + "/lane1.out", "cat " + lanes + "/lane1.err", "cat " + lanes + "/lane1.alive",
		"stat " + lanes + "/lane1.dir", "stat " + lanes + "/lane1.out", "stat " + b.dir + "/jobs/ann/7", "stat " + b.dir + "/jobs/ann", "stat " + b.dir + "/jobs/ann/7/silent",
		"cat " + secret, "ls " + b.dir + "/jobs | grep -v bob", "ls -a " + b.dir + "/jobs/bob", "cat " + b.dir + "/jobs/ann/7/*/file", "cat " + b.dir + "/users", "ls " + b.dir + "/rooms",
		"cat /tmp/file", "cat /var/tmp/file", "cat /dev/shm/file", "grep -l 98765[4] /proc/[0-9]*/cmdline",
		"ls -d /proc/" + itoa(os.Getpid()), "ls /proc/1/cwd/", "grep -a " + b.dir + " /proc/1/cmdline", "echo x >" + b.dir + "/jobs/x", "echo x >../x",
		"mknod null c 1 3", "chroot / true", "mount -t tmpfs x .", "unshare -r true", "su -c id nobody </dev/null",
	}
	var script strings.Builder
	for _, try := range tries {
		fmt.Fprintf(&script, "if (%s) >got 2>&1 && test -s got; then echo '%s:'; cat got; fi\n", try, try)
	}
	script.WriteString("cp /bin/id id; chmod 4755 id; ./id -u; kill -9 -1; :\n")
	bob := b.start(of("bob", 8, sh(script.String())))
	bob.wait()
	if got := strings.Fields(b.read(bob, false)); len(got) != 1 || got[0] == "0" {
		t.Errorf("bob got %q, %q", got, b.read(bob, true))
	}
	if len(ann.done) != 0 {
		t.Errorf("ann's task was ended: %+v", <-ann.done)
	}
	again := b.start(of("ann", 9, sh("cat /tmp/file; echo $USER $LOGNAME; test \"$HOME\" = \"$PWD\"; ls -d $HOME >/dev/null; pwd >/dev/null; echo $PATH")))
	if f := again.wait(); f.ExitCode != 0 {
		t.Errorf("%+v", f)
	}
	if got := b.read(again, false); got != "mine\nann ann\n/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n" {
		t.Errorf("another job of ann's: %q", got)
	}
	ann.Stop(0)
	ann.wait()
}

// TestTemporaryDirectoriesAreBounded fills /tmp in a task. The runner must end the tasks that share this /tmp. The
// account's next task must find an empty /tmp.
func TestTemporaryDirectoriesAreBounded(t *testing.T) {
	b := strangers(t, func(c *runner.Config) { c.DirLimit, c.CheckEvery = 2<<20, 10*time.Millisecond })
	work, err := os.MkdirTemp("/var/tmp", "candor") // a place through which other users may pass
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(work) })
	if err := os.Chmod(work, 0o777); err != nil {
		t.Fatal(err)
	}
	for i, script := range []string{"head -c 3000000 /dev/zero >/tmp/file", "exec 3>/var/tmp/file; rm /var/tmp/file; head -c 3000000 /dev/zero >&3"} {
		other := b.start(of("bob", 8, sh("exec sleep 1000")))
		fills := of("ann", messages.JobID(20+i), sh(script+"; exec sleep 1000"))
		fills.Dir = work
		if f := b.start(fills).wait(); f.Outcome != agent.OutOfDisk || !strings.Contains(f.Detail, "temporary") {
			t.Errorf("%+v", f)
		}
		next := b.start(of("ann", messages.JobID(30+i), sh("! [ -e /tmp/file ] && sleep 0.1")))
		if f := next.wait(); f.Outcome != agent.Exited || f.ExitCode != 0 {
			t.Errorf("%+v", f)
		}
		if len(other.done) != 0 {
			t.Errorf("another account's task was ended: %+v", <-other.done)
		}
		other.Stop(0)
		other.wait()
	}
}

// TestTheNodesEnvironmentIsNoTasks checks that a task of another user has no variable of the node's environment.
func TestTheNodesEnvironmentIsNoTasks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	for _, name := range []string{"HOME", "USER", "LOGNAME", "MAIL", "LANG", "SHELL", "PWD", "OLDPWD", "XDG_RUNTIME_DIR", "SUDO_USER"} {
		t.Setenv(name, "/var/tmp/of-the-node")
	}
	t.Setenv("PATH", "/of-the-node:"+os.Getenv("PATH"))
	for _, user := range []string{"100000-165535", "nobody", "account"} {
		dir, err := os.MkdirTemp("/var/tmp", "candor") // a place through which other users may pass
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		b := newBench(t, func(c *runner.Config) { c.User, c.Dir = user, dir })
		s := b.start(of("nobody", 7, sh("env")))
		if f := s.wait(); f.ExitCode != 0 || f.Outcome != agent.Exited {
			t.Fatalf("%s: %+v", user, f)
		}
		got := b.read(s, false)
		if strings.Contains(got, "of-the-node") || strings.Contains(got, "HOME=/root\n") {
			t.Errorf("%s has variables of the node: %s", user, got)
		}
		if !strings.Contains("\n"+got, "\nUSER=nobody\n") {
			t.Errorf("%s is not USER=nobody: %s", user, got)
		}
	}
}

// TestWorkingDirectoriesAreTheirOwners uses a working directory below a directory of root. The access list of the
// working directory names one account. Only this account may use the directory.
func TestWorkingDirectoriesAreTheirOwners(t *testing.T) {
	b := strangers(t, nil)
	closed := t.TempDir()
	dir := filepath.Join(closed, "work")
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	run := func(account messages.Name, job messages.JobID, in string) (agent.Finished, string) {
		p := of(account, job, sh("pwd; echo out >result && cat "+in+"/result; id -u"))
		p.Dir = in
		s := b.start(p)
		f := s.wait()
		if f.Outcome == agent.Unstartable {
			return f, ""
		}
		return f, b.read(s, false)
	}
	who := b.start(of("ann", 20, sh("id -u")))
	who.wait()
	number := strings.TrimSpace(b.read(who, false))
	if f, _ := run("ann", 21, dir); f.Outcome != agent.Unstartable || !strings.Contains(f.Detail, "setfacl -m u:"+number+":rwx") {
		t.Errorf("before it was allowed: %+v", f)
	}
	if err := access.Allow(dir, number32(t, number)); err != nil {
		t.Skip("no access lists here: ", err)
	}
	if f, out := run("ann", 22, dir); f.ExitCode != 0 || out != dir+"\nout\n"+number+"\n" {
		t.Errorf("after it was allowed: %+v %q", f, out)
	}
	if f, out := run("bob", 23, dir); f.Outcome != agent.Unstartable {
		t.Errorf("another account: %+v %q", f, out)
	}
	for _, state := range []string{b.dir, filepath.Dir(b.dir), filepath.Join(b.dir, "jobs")} {
		if f, out := run("ann", 24, state); f.Outcome != agent.Unstartable || !strings.Contains(f.Detail, "state") {
			t.Errorf("%s: %+v %q", state, f, out)
		}
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

func number32(t *testing.T, s string) uint32 {
	t.Helper()
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

// The task's user cannot enter the script's directory, and the script's interpreter does not exist. The error must name
// the interpreter (TestMissingInterpreterOfAScriptIsNamed).
func TestMissingInterpreterOfAScriptIsNamed(t *testing.T) {
	b := strangers(t, nil)
	f := b.start(of("alice", 7, agent.Program{Script: "#!/no/such\n"})).wait()
	if f.Outcome != agent.Unstartable || f.Detail != "interpreter /no/such: not found" {
		t.Errorf("finished as %+v", f)
	}
}

// TestNumberIsAnothersNow runs two jobs of different accounts with the same number. The second job must not see files
// of the first.
func TestNumberIsAnothersNow(t *testing.T) {
	b := strangers(t, nil)
	b.start(of("ann", 6, sh("true"))).wait() // uses up stage 0, for which start would choose a new number
	script := agent.Program{Script: "echo of ann; ls\n", Tasks: 9}
	hers := b.start(of("ann", 7, script))
	hers.wait()
	script.Script, script.Stage = "echo of bob; ls\n", hers.attempt.Task.Stage
	his := b.start(of("bob", 7, script))
	if f := his.wait(); f.ExitCode != 0 {
		t.Errorf("%+v: %s", f, b.read(his, true))
	}
	if got := b.read(his, false); got != "of bob\n" {
		t.Errorf("read %q", got)
	}
	if owner, _ := b.Owner(7); owner != "bob" {
		t.Errorf("the owner is %q", owner)
	}
	if r, err := b.ReadLog(t.Context(), agent.LogsRequest{Attempt: hers.attempt}); messages.KindOf(err) != messages.NotFound {
		t.Errorf("read %q, %v", r.Data, err)
	}
}

// openState makes a state directory below directories that the user of all tasks may change. The state directory has a
// file that any user may read. It is not below /tmp, because rooms have their own /tmp. openState also returns a bench
// of a node with this state directory.
func openState(t *testing.T, change func(c *runner.Config, state string)) (b *bench, state string) {
	t.Helper()
	home, err := os.MkdirTemp("/var/lib", "candor-home-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	state = filepath.Join(home, "local", "state")
	b = strangers(t, func(c *runner.Config) {
		if err := os.MkdirAll(state, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{home, filepath.Dir(state)} {
			if err := os.Chown(dir, 65534, 65534); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		c.User, c.Dir, c.Hide = "nobody", filepath.Join(state, "node"), []string{state}
		if change != nil {
			change(c, state)
		}
	})
	if err := os.WriteFile(filepath.Join(state, "key"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	return b, state
}

// TestTheWayToTheStateStays: tasks may change the directory above the state of the site. But they must not be able to
// move the state itself. Otherwise a later task could read the state at its new place.
func TestTheWayToTheStateStays(t *testing.T) {
	b, state := openState(t, nil)
	local := filepath.Dir(state)
	away := filepath.Join(filepath.Dir(local), "away")
	mover := b.start(of("ann", 7, sh("mv "+local+" "+away+" && mkdir -p "+state+"/node; echo x >"+away+"-file; echo x >"+local+"/file; rm "+local+"/file")))
	if f := mover.wait(); f.ExitCode != 0 {
		t.Errorf("the directories cannot be used as before: %+v %s", f, b.read(mover, true))
	}
	if _, err := os.Stat(filepath.Join(state, "key")); err != nil {
		t.Error("a task moved the state of the site: ", err)
	}
	reader := b.start(of("bob", 8, sh("cat "+away+"/state/key "+state+"/key; :")))
	reader.wait()
	if got := b.read(reader, false); got != "" {
		t.Errorf("a task read %q", got)
	}
}

// The configuration names the directory with the site's state by a symbolic link. The directory itself must be hidden
// too: a task must find nothing in it.
func TestALinkHidesTheState(t *testing.T) {
	b, state := openState(t, func(c *runner.Config, state string) {
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(state, link); err != nil {
			t.Fatal(err)
		}
		c.Dir, c.Hide = filepath.Join(link, "node"), []string{link}
	})
	reader := b.start(of("ann", 7, sh("cat "+state+"/key; :")))
	reader.wait()
	if got := b.read(reader, false); got != "" {
		t.Errorf("a task read %q", got)
	}
	p := of("ann", 8, sh("cat key"))
	p.Dir = state
	within := b.start(p)
	if f := within.wait(); f.Outcome != agent.Unstartable || !strings.Contains(f.Detail, "state") {
		t.Errorf("a task in the state: %+v %q", f, b.read(within, false))
	}
}

// TestScriptsRunFromNoexec checks that a script on a mount with noexec runs, with the interpreter of its first line.
func TestScriptsRunFromNoexec(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOEXEC, "size=10m"); err != nil {
		t.Skip("needs the right to mount: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	run := 0
	for script, want := range map[string]string{
		"echo hi": "hi\n", "#!/bin/sh\necho hi": "hi\n", "#! /bin/sh\t-e \nfalse; echo hi": "", "#!/usr/bin/env -S sh -c 'echo $0'\n#": ".script\n", "#!/bin/cat": "#!/bin/cat",
	} {
		run++
		var said [2]string
		for i, at := range []string{filepath.Join(dir, strconv.Itoa(run)), t.TempDir()} {
			b := newBench(t, func(c *runner.Config) { c.Dir = at })
			s := b.start(agent.Program{Script: script})
			s.wait()
			said[i] = b.read(s, false)
			_ = b.Close()
		}
		if !strings.HasSuffix(said[0], want) || filepath.Base(said[0]) != filepath.Base(said[1]) {
			t.Errorf("%q: %q, and %q where programs can be executed; want %q", script, said[0], said[1], want)
		}
	}
}
