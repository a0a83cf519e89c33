package attack

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file has the attempts of a task against the machine's kernel, and against data that the kernel keeps for others.

// clonesAnew makes a user namespace with clone3. A filter of system calls cannot see the flags of clone3.
func clonesAnew(*instructions) (string, error) {
	arguments := struct{ flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls uint64 }{flags: unix.CLONE_NEWUSER | unix.CLONE_NEWNET, exitSignal: uint64(unix.SIGCHLD)}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pid, _, errno := syscall.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&arguments)), unsafe.Sizeof(arguments), 0)
	if errno != 0 {
		return "", errno
	}
	if pid == 0 { // in the child, no Go code may run
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	_, _ = unix.Wait4(int(pid), nil, 0, nil)
	return "made user and network namespaces", nil
}

// writesSettings looks for settings of the kernel that the task may write.
func writesSettings(*instructions) (effect string, refusal error) {
	seen := 0
	for _, root := range []string{"/proc/sys", "/sys/kernel", "/sys/module", "/sys/class", "/sys/fs", "/sys/power", "/sys/devices/system", "/sys/firmware"} {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil
			}
			if info, err := d.Info(); err != nil || info.Mode().Perm()&0o222 == 0 || !info.Mode().IsRegular() {
				return nil
			}
			if seen++; path == "/proc/sys/kernel/ns_last_pid" { // everybody can open this setting, but writing needs a capability
				return nil
			}
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				refusal = err
				return nil
			}
			_ = f.Close()
			effect = "may write " + path
			return fs.SkipAll
		})
	}
	if effect == "" {
		refusal = fmt.Errorf("none of %d files; %v", seen, refusal)
	}
	return effect, refusal
}

// makesSockets opens sockets with which a task could read or send other users' messages.
func makesSockets(*instructions) (effect string, refusal error) {
	for what, s := range map[string][3]int{
		"raw packets":      {unix.AF_PACKET, unix.SOCK_RAW, unix.ETH_P_ALL << 8},
		"cooked packets":   {unix.AF_PACKET, unix.SOCK_DGRAM, unix.ETH_P_ALL << 8},
		"raw IP":           {unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW},
		"the kernel's log": {unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT},
		"the hypervisor":   {unix.AF_VSOCK, unix.SOCK_STREAM, 0},
		"ciphers":          {unix.AF_ALG, unix.SOCK_SEQPACKET, 0},
	} {
		fd, err := unix.Socket(s[0], s[1], s[2])
		if err != nil {
			refusal = err
			continue
		}
		if s[0] == unix.AF_NETLINK { // everybody can open such a socket, but few can join a group
			err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1})
		}
		if _ = unix.Close(fd); err != nil {
			refusal = err
			continue
		}
		effect += what + "; "
	}
	return effect, refusal
}

// reachesSockets connects to Unix sockets of the site's processes, including sockets without a file. It also connects
// to sockets of services that control a machine: control groups, containers and desktops.
func reachesSockets(in *instructions) (effect string, refusal error) {
	table, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return "", err
	}
	refusal = fmt.Errorf("no socket of the site's is there")
	for _, row := range strings.Split(string(table), "\n") {
		f := strings.Fields(row)
		if len(f) < 8 || !in.isOfSite(f[7]) {
			continue
		}
		c, err := net.Dial("unix", f[7])
		if refusal = err; err == nil {
			_ = c.Close()
			effect += "connected to " + f[7] + "; "
		}
	}
	for _, path := range []string{"/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/systemd/private", "@/containerd-shim"} {
		if c, err := net.Dial("unix", path); err == nil {
			_ = c.Close()
			effect += "connected to " + path + "; "
		}
	}
	return effect, refusal
}

// reachesSession connects to the places where systemd and D-Bus start programs for the user who runs the site.
func reachesSession(in *instructions) (effect string, refusal error) {
	if in.Session == "" {
		return "", fmt.Errorf("there is no session")
	}
	c, err := net.Dial("unix", in.Session)
	if err != nil {
		return "", err
	}
	return "connected to " + in.Session, c.Close()
}

// writesTerminals writes to terminals of other users, and inserts typed text there.
func writesTerminals(*instructions) (effect string, refusal error) {
	terminals, _ := filepath.Glob("/dev/pts/[0-9]*")
	for _, path := range append(terminals, "/dev/tty", "/dev/console", "/dev/tty0", "/dev/ttyS0", "/dev/vcs", "/dev/uinput", "/dev/input/event0") {
		f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOCTTY, 0)
		if refusal = err; err != nil {
			continue
		}
		_ = f.Close()
		effect += "may write " + path + "; "
	}
	for fd := range 3 {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSTI, 0); err == nil {
			effect += "may type what who started the site types"
		}
	}
	return effect, refusal
}

// seesQueues looks for System V objects and message queues of other users.
func seesQueues(*instructions) (effect string, refusal error) {
	for _, kind := range []string{"shm", "sem", "msg"} {
		table, err := os.ReadFile("/proc/sysvipc/" + kind)
		if rows := strings.Count(string(table), "\n"); err == nil && rows > 1 {
			effect += fmt.Sprintf("sees %d of %s; ", rows-1, kind)
		}
	}
	if entries, err := os.ReadDir("/dev/mqueue"); err == nil && len(entries) > 0 {
		effect += fmt.Sprintf("sees %d message queues; ", len(entries))
	}
	return effect, fmt.Errorf("none is there")
}

// rulesOthers changes limits, priorities and processors of other processes.
func rulesOthers(in *instructions) (effect string, refusal error) {
	pids := others()
	if in.shares("pid") {
		pids = []int{in.Pid}
	}
	refusal = fmt.Errorf("there are none")
	for _, pid := range pids {
		if pid == 1 && !in.shares("pid") { // process 1 only holds the task's own namespaces
			continue
		}
		var limit unix.Rlimit
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit); err == nil {
			effect = "may change limits of " + name(pid)
		} else {
			refusal = err
		}
		var set unix.CPUSet
		if unix.SchedGetaffinity(pid, &set) == nil {
			if err := unix.SchedSetaffinity(pid, &set); err == nil {
				effect = "may move " + name(pid) + " to other processors"
			} else {
				refusal = err
			}
		}
	}
	return effect, refusal
}

// plantsStarts looks for writable files that other programs run later: at a certain time, at a login, or as root.
func plantsStarts(in *instructions) (effect string, refusal error) {
	for _, path := range []string{"/etc/crontab", "/etc/cron.d", "/var/spool/cron", "/var/spool/cron/crontabs", "/var/spool/at", "/var/spool/cron/atjobs",
		"/etc/ld.so.preload", "/etc/ld.so.conf.d", "/etc/profile.d", "/etc/environment", "/etc/init.d", "/etc/systemd/system", "/run/systemd/system",
		"/usr/local/bin", "/usr/bin", "/usr/lib", "/root", "/root/.bashrc", "/root/.profile", "/root/.ssh", "/etc/sudoers.d", "/etc/pam.d", "/etc/udev/rules.d"} {
		if refusal = unix.Access(path, unix.W_OK); refusal == nil {
			effect += "may write " + path + "; "
		}
	}
	if in.shares("mnt") { // in the control test, no file of the user who runs the tests may be replaced
		return effect, refusal
	}
	for _, program := range []string{"crontab", "at"} {
		command := exec.Command(program, "-")
		command.Stdin = strings.NewReader("0 0 1 1 * true\n")
		if err := command.Run(); err == nil {
			effect += program + " took a command for later; "
			_ = exec.Command(program, "-r").Run()
		}
	}
	return effect, refusal
}

// entersOthers opens the root, the directory and the files of other processes.
func entersOthers(in *instructions) (effect string, refusal error) {
	for _, pid := range in.targets() {
		for _, link := range []string{"root", "cwd", "fd/3", "fd/7", "map_files", "ns/mnt"} {
			path := filepath.Join("/proc", strconv.Itoa(pid), link)
			if pid == os.Getpid() {
				continue
			}
			f, err := os.Open(path)
			if err != nil {
				refusal = err
				continue
			}
			_ = f.Close()
			effect = "opened " + link + " of process " + name(pid)
		}
	}
	return effect, refusal
}
