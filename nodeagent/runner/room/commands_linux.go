package room

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// CommandsDir is a directory in each room. It has this program under the names of commands that scripts call, such as
// srun. The room may hide the machine's own commands of these names, or the node may not have them.
const CommandsDir = "/tmp/.candor"

// CommandNames are the names under which a script finds this program.
var CommandNames = []string{"srun", "sbatch", "salloc", "sbcast", "scancel", "scontrol", "squeue", "sacct", "sstat", "sinfo",
	"seff", "sacctmgr", "sshare", "sprio", "sreport", "qsub", "qstat", "qdel"}

// cloneSelf opens a copy of the mount of this program's file. The copy can be mounted anywhere.
func cloneSelf() (int, error) {
	self, err := unix.Open("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("open", err)
	}
	defer unix.Close(self)
	return cloneOpen(self)
}

// showCommands makes CommandsDir. Then it closes the descriptor `self`, which cloneSelf returned.
func showCommands(self int) error {
	defer unix.Close(self)
	program := filepath.Join(CommandsDir, "candor")
	if err := os.Mkdir(CommandsDir, 0o755); err != nil {
		return err
	}
	at, err := unix.Open(program, unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o755) // an empty file, over which the program is mounted
	if err != nil {
		return &os.PathError{Op: "create", Path: program, Err: err}
	}
	_ = unix.Close(at)
	if err := unix.MoveMount(self, "", unix.AT_FDCWD, program, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return &os.PathError{Op: "mount", Path: program, Err: err}
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}
	if err := unix.MountSetattr(unix.AT_FDCWD, program, 0, &attr); err != nil {
		return &os.PathError{Op: "mount", Path: program, Err: err}
	}
	for _, name := range CommandNames {
		if err := os.Symlink("candor", filepath.Join(CommandsDir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}
