package executor

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/users"
)

// If the executor has its own user namespace, its command line has argumentMapped after [Argument]. The executor then
// waits until the agent has set up the users of the namespace. The agent reports this by one byte on the file
// descriptor mappedFile.
const (
	argumentMapped = "mapped"
	mappedFile     = 5
)

// rights are the capabilities that an executor needs in its own user namespace, and passes to the holders of rooms. The
// capabilities are valid only in this namespace.
var rights = []uintptr{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID,
	unix.CAP_SETPCAP, unix.CAP_NET_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE,
}

// startMapped starts an executor, in a user namespace unless the argument `mapped` is "". Users have the same numbers
// inside and outside.
func startMapped(cmd *exec.Cmd, mapped string) error {
	if mapped == "" {
		return cmd.Start()
	}
	wait, done, err := os.Pipe()
	if err != nil {
		return err
	}
	defer done.Close()
	cmd.Args = append(cmd.Args, argumentMapped)
	cmd.ExtraFiles = append(cmd.ExtraFiles, wait)
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS
	cmd.SysProcAttr.AmbientCaps = rights
	err = cmd.Start()
	_ = wait.Close()
	if err != nil {
		return err
	}
	write := mapSelf
	if mapped == runner.MappedRange {
		write = mapRange
	}
	if err := write(cmd.Process.Pid); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return messages.Errorf(messages.Unavailable, "user namespace: %v", err)
	}
	_, err = done.Write([]byte{1})
	return err
}

// awaitMapping waits until the users of the executor's namespace are set up. Then it removes the argument
// argumentMapped, because [beginAnew] executes the program again and must not wait again.
func awaitMapping(args []string) error {
	if len(args) == 0 || args[0] != argumentMapped {
		return nil
	}
	wait := os.NewFile(mappedFile, "mapping")
	defer wait.Close()
	if n, _ := wait.Read(make([]byte, 1)); n != 1 {
		return messages.Errorf(messages.Unavailable, "the users of the executor's namespace could not be set up")
	}
	os.Args = os.Args[:len(os.Args)-1]
	return nil
}

// mapSelf maps this process's user and group, and no others, in a new user namespace.
func mapSelf(pid int) error {
	for _, f := range []struct{ name, text string }{
		{"uid_map", fmt.Sprintf("%[1]d %[1]d 1\n", os.Getuid())},
		{"setgroups", "deny"},
		{"gid_map", fmt.Sprintf("%[1]d %[1]d 1\n", os.Getgid())},
	} {
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/%s", pid, f.name), []byte(f.text), 0); err != nil {
			return err
		}
	}
	return nil
}

// mapRange maps this process's user and its subordinate users in a namespace. It runs the programs newuidmap and
// newgidmap for this.
func mapRange(pid int) error {
	numbers, groups, err := runner.SubordinateUsers()
	if err != nil {
		return err
	}
	for _, f := range []struct {
		program     string
		own         int
		to, outside users.Range
	}{
		{"newuidmap", os.Getuid(), numbers, numbers}, {"newgidmap", os.Getgid(), numbers, groups},
	} {
		own := strconv.Itoa(f.own)
		out, err := exec.Command(f.program, strconv.Itoa(pid), own, own, "1",
			fmt.Sprint(f.to.First), fmt.Sprint(f.outside.First), fmt.Sprint(f.to.Size())).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", f.program, err, bytes.TrimSpace(out))
		}
	}
	return nil
}
