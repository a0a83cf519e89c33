// Package dumps protects the memory of a process, which may hold credentials and keys, from other
// processes of its user.
package dumps

import (
	"os"

	"golang.org/x/sys/unix"
)

// StartsTasks is the annotation of commands whose process starts tasks or executors. Such a process makes its
// namespaces before it calls [Refuse].
const StartsTasks = "starts tasks"

// Refuse protects the memory of this process. Other processes of the same user cannot trace this process, and it leaves
// no core file.
func Refuse() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	limit.Cur = 0 // tasks may want core files, and can raise the limit again
	return os.NewSyscallError("setrlimit", unix.Setrlimit(unix.RLIMIT_CORE, &limit))
}
