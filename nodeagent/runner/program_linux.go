package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner/access"
	"github.com/candor-grid/candor/nodeagent/runner/launch"
)

// program has what all tasks of a stage share. It is computed once.
type program struct {
	path string   // file to execute
	argv []string // arguments
	env  []string
	dir  string              // working directory; "": one of each task's own
	by   string              // the interpreter that the script names; "": none
	as   *syscall.Credential // nil: the user of this process

	umask uint32
	// homeless: the user has no home, so HOME is the working directory.
	homeless bool
}

const shell = "/bin/sh"

// newProgram computes a program. The job's directory must exist, because a script is written there.
func (c *Config) newProgram(p *agent.Program, who identity, jobDir string) (*program, error) {
	if p.Dir != "" && !filepath.IsAbs(p.Dir) {
		return nil, messages.Errorf(messages.Invalid, "working directory %q: must be an absolute path", p.Dir)
	}
	env, err := c.programEnv(p, who.baseEnv())
	if err != nil {
		return nil, err
	}
	umask, err := jobmsg.ParseUmask(p.Umask)
	if err != nil {
		return nil, err
	}
	_, home := valueOf(env, "HOME")
	out := &program{env: env, dir: p.Dir, argv: p.Command, as: who.as, umask: umask, homeless: !home}
	switch {
	case (len(p.Command) == 0) == (p.Script == ""):
		return nil, messages.Errorf(messages.Invalid, "stage %q: needs either a command or a script", p.StageName)
	case p.Script != "":
		err = out.useScript(p.Script, filepath.Join(jobDir, strconv.Itoa(int(p.Stage))+".script"), c.noExec)
	default:
		out.path, err = lookUp(p.Command[0], env)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// useScript writes a script to a file and makes that file the command. If files there cannot be executed, the command
// is the script's interpreter, as the kernel would run it.
func (p *program) useScript(script, file string, noExec bool) error {
	if err := writeExecutable(file, script); err != nil {
		return messages.Errorf(messages.Unavailable, "the script could not be written: %v", err)
	}
	if p.as != nil {
		if err := os.Chown(file, int(p.as.Uid), int(p.as.Gid)); err != nil {
			return messages.Errorf(messages.Unavailable, "the script could not be given to the task's user: %v", err)
		}
	}
	if strings.HasPrefix(script, "#!") {
		p.path, p.argv, p.by = file, []string{file}, interpreterIn(script)
		if by, word := interpreterAndWord(script); noExec && by != "" {
			p.path, p.argv = by, []string{by}
			if word != "" {
				p.argv = append(p.argv, word)
			}
			p.argv = append(p.argv, file)
		}
		return nil
	}
	p.path, p.argv = shell, []string{shell, file}
	return nil
}

// writeExecutable writes a file that can be executed at once. While the file is open for writing, no child is forked:
// a child would inherit the open file, and executing it would then fail with "text file busy".
func writeExecutable(file, text string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	const flags = os.O_CREATE | os.O_EXCL | os.O_WRONLY // follows no link of a task
	f, err := os.OpenFile(file, flags, access.PrivateDirs)
	if os.IsExist(err) {
		if err = os.Remove(file); err == nil {
			f, err = os.OpenFile(file, flags, access.PrivateDirs)
		}
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// lookUp finds a command in the PATH of an environment. A name with a slash is a path from the working directory.
func lookUp(command string, env []string) (string, error) {
	if command == "" {
		return "", messages.Errorf(messages.Invalid, "command: its first word must not be empty")
	}
	if strings.Contains(command, "/") {
		return command, nil
	}
	path, _ := valueOf(env, "PATH")
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, command)
		if filepath.IsAbs(file) && executable(file) {
			return file, nil
		}
	}
	return "", messages.Errorf(messages.NotFound, "command %s: not found in PATH=%s", command, path)
}

func executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && unix.Access(file, unix.X_OK) == nil
}

// isRoot reports whether tasks of the program run as the super-user.
func (p *program) isRoot() bool { return p.as == nil && unix.Geteuid() == 0 }

// explain returns why a program could not be executed. It looks at the files itself, because the kernel's error does
// not name the file.
func (p *program) explain(dir string, err error) string {
	if contained, ok := errors.AsType[*messages.Error](err); ok {
		return contained.Message
	}
	switch info, dirErr := os.Stat(dir); {
	case errors.Is(dirErr, fs.ErrNotExist):
		return "directory " + dir + " does not exist"
	case dirErr != nil:
		return "directory " + dir + ": " + reasonOf(dirErr)
	case !info.IsDir():
		return dir + " is not a directory"
	case p.dir == "": // the task's own directory
	case launch.MayEnter(dir, p.as) != nil && p.as != nil:
		return fmt.Sprintf("directory %s: user %d, who runs the job's tasks, may not enter the directory; its owner can allow this: setfacl -m u:%d:rwx %s", dir, p.as.Uid, p.as.Uid, dir)
	case launch.MayEnter(dir, p.as) != nil:
		return "directory " + dir + ": permission denied"
	}
	return p.explainFile(dir, err)
}

// explainFile returns why the kernel did not execute the program's file.
func (p *program) explainFile(dir string, err error) string {
	file := p.path
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	info, statErr := os.Stat(file)
	interpreter := p.by
	if interpreter == "" && statErr == nil && info.Mode().IsRegular() {
		interpreter = interpreterOf(file, p.as)
	}
	switch {
	case errors.Is(statErr, fs.ErrNotExist):
		return "command " + p.path + ": not found"
	case statErr != nil:
		return "command " + p.path + ": " + reasonOf(statErr)
	case info.IsDir():
		return "command " + p.path + ": is a directory"
	case interpreter != "" && err == syscall.ENOENT:
		return "interpreter " + interpreter + ": not found"
	case interpreter != "" && (err == syscall.EACCES || err == syscall.ENOEXEC):
		return "interpreter " + interpreter + ": " + reasonOf(err)
	case err == syscall.ENOENT:
		return "command " + p.path + ": its loader is not found; perhaps the program is built for another system"
	case err == syscall.ENOEXEC:
		return "command " + p.path + ": is not a program, and its first line names no interpreter"
	case err == syscall.EACCES:
		return "command " + p.path + ": not permitted; is it executable?"
	}
	return "command " + p.path + ": " + reasonOf(err)
}

// interpreterOf returns the interpreter in the first line of a file, or "" if there is none or the task's user may
// not read the file.
func interpreterOf(file string, as *syscall.Credential) string {
	line, n := make([]byte, 256), 0 // the kernel reads no more than this
	err := launch.AsUser(as, func() error {
		fd, err := unix.Open(file, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == nil {
			n, err = unix.Read(fd, line)
			_ = unix.Close(fd)
		}
		return err
	})
	if err != nil {
		return ""
	}
	return interpreterIn(string(line[:max(n, 0)]))
}

// interpreterIn returns the interpreter in the first line of a text; "" if there is none.
func interpreterIn(text string) string {
	name, _ := interpreterAndWord(text)
	return name
}

// interpreterAndWord returns the interpreter in the first line of a text, and the rest of that line, which the kernel
// passes as one argument.
func interpreterAndWord(text string) (name, word string) {
	rest, is := strings.CutPrefix(text, "#!")
	if !is {
		return "", ""
	}
	first, _, _ := strings.Cut(rest, "\n")
	const blank = " \t"
	first = strings.Trim(first, blank)
	at := strings.IndexAny(first, blank)
	if at < 0 {
		return first, ""
	}
	return first[:at], strings.TrimLeft(first[at:], blank)
}

// reasonOf returns the system's text for an error, without path names, which the caller adds.
func reasonOf(err error) string {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		if number == syscall.EPERM || number == syscall.EACCES {
			return "not permitted"
		}
		return number.Error()
	}
	return err.Error()
}
