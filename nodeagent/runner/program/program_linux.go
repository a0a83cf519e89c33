package program

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
	"github.com/candor-grid/candor/nodeagent/proxy"
	"github.com/candor-grid/candor/nodeagent/runner/access"
	"github.com/candor-grid/candor/nodeagent/runner/launch"
	"github.com/candor-grid/candor/nodeagent/runner/users"
)

// Config says how programs are made. The fields mean the same as in the configuration of the runner.
type Config struct {
	Site, Node messages.Name
	User       string
	Numbers    *users.Registry // the numbers of accounts, if User is a range; otherwise nil
	Memory     int64           // memory of the machine, in bytes
	Proxy      proxy.Key
	NoExec     bool   // scripts in the state directory cannot be executed
	Commands   string // directory with the commands that ask the site; "" means none
}

// Program has what all tasks of a stage share. It is computed once.
type Program struct {
	Path string   // file to execute
	Argv []string // arguments
	env  []string
	Dir  string              // working directory; "" means one of each task's own
	by   string              // the interpreter that the script names; "" means none
	As   *syscall.Credential // nil means that the task runs as the user of this process

	Umask uint32
	// homeless is true if the user has no home. HOME is then the working directory.
	homeless bool
	proxy    proxy.Key     // empty if tasks send no requests to their site
	account  messages.Name // account of the job
}

const shell = "/bin/sh"

// New prepares the start of a task: its command, environment, directory and user. If the command is a script, New
// writes it to a file in the job's directory, which must exist.
func (c *Config) New(p *agent.Program, who Identity, jobDir string) (*Program, error) {
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
	out := &Program{env: env, Dir: p.Dir, Argv: p.Command, As: who.As, Umask: umask, homeless: !home, proxy: c.Proxy, account: p.Account}
	switch {
	case (len(p.Command) == 0) == (p.Script == ""):
		return nil, messages.Errorf(messages.Invalid, "stage %q: needs either a command or a script", p.StageName)
	case p.Script != "":
		err = out.useScript(p.Script, filepath.Join(jobDir, strconv.Itoa(int(p.Stage))+".script"), c.NoExec)
	default:
		out.Path, err = LookUp(p.Command[0], env, who.As)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// useScript writes a script to a file and makes it the command. If files there cannot be executed, the command is the
// script's interpreter.
func (p *Program) useScript(script, file string, noExec bool) error {
	if err := writeExecutable(file, script); err != nil {
		return messages.Errorf(messages.Unavailable, "the script could not be written: %v", err)
	}
	if p.As != nil {
		if err := os.Chown(file, int(p.As.Uid), int(p.As.Gid)); err != nil {
			return messages.Errorf(messages.Unavailable, "the script could not be given to the task's user: %v", err)
		}
	}
	if strings.HasPrefix(script, "#!") {
		p.Path, p.Argv, p.by = file, []string{file}, interpreterIn(script)
		if by, word := interpreterAndWord(script); noExec && by != "" {
			p.Path, p.Argv = by, []string{by}
			if word != "" {
				p.Argv = append(p.Argv, word)
			}
			p.Argv = append(p.Argv, file)
		}
		return nil
	}
	p.Path, p.Argv = shell, []string{shell, file}
	return nil
}

// writeExecutable writes a file that can be executed at once. While the file is open for writing, no child is forked. A
// child would inherit the open file, and then the execution of the file would fail with "text file busy".
func writeExecutable(file, text string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	const flags = os.O_CREATE | os.O_EXCL | os.O_WRONLY // with these flags, the file cannot be a link that a task made
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

// LookUp finds a command that a user may execute in the PATH of an environment. A name with a slash is a path from the
// working directory.
func LookUp(command string, env []string, as *syscall.Credential) (string, error) {
	if command == "" {
		return "", messages.Errorf(messages.Invalid, "command: its first word must not be empty")
	}
	if strings.Contains(command, "/") {
		return command, nil
	}
	path, _ := valueOf(env, "PATH")
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, command)
		if filepath.IsAbs(file) && launch.AsUser(as, func() error { return executable(file) }) == nil {
			return file, nil
		}
	}
	return "", messages.Errorf(messages.NotFound, "command %s: not found in PATH=%s", command, path)
}

func executable(file string) error {
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrInvalid
	}
	if err == nil {
		err = unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, unix.AT_EACCESS)
	}
	return err
}

// IsRoot reports whether tasks of the program run as the super-user.
func (p *Program) IsRoot() bool { return p.As == nil && unix.Geteuid() == 0 }

// Explain returns why a program could not be executed. It looks at the files itself, because the kernel's error does
// not name the file.
func (p *Program) Explain(dir string, err error) string {
	if contained, ok := errors.AsType[*messages.Error](err); ok {
		return contained.Message
	}
	switch info, dirErr := statAs(dir, p.As); {
	case errors.Is(dirErr, fs.ErrNotExist):
		return "directory " + dir + " does not exist"
	case dirErr != nil && !errors.Is(dirErr, fs.ErrPermission):
		return "directory " + dir + ": " + ReasonOf(dirErr)
	case dirErr == nil && !info.IsDir():
		return dir + " is not a directory"
	case p.Dir == "": // the task's own directory
	case launch.MayEnter(dir, p.As) != nil && p.As != nil:
		return fmt.Sprintf("directory %s: user %d, who runs the job's tasks, may not enter the directory; its owner can allow this: %ssetfacl -m u:%d:rwx %s", dir, p.As.Uid, p.openAbove(dir), p.As.Uid, dir)
	case launch.MayEnter(dir, p.As) != nil:
		return "directory " + dir + ": permission denied"
	}
	return p.explainFile(dir, err)
}

// openAbove returns a command that lets the task's user pass the first directory above a file that is closed to this
// user, with "; " at the end. It returns "" if no directory above the file is closed. It does not look below the closed
// directory, because an account must not learn which files of others exist.
func (p *Program) openAbove(file string) string {
	for at := 1; at < len(file); at++ {
		if file[at] == '/' && errors.Is(launch.MayEnter(file[:at], p.As), fs.ErrPermission) {
			return fmt.Sprintf("setfacl -m u:%d:x %s; ", p.As.Uid, file[:at])
		}
	}
	return ""
}

// statAs describes a file as a user sees it. An account must not learn which files of others exist.
func statAs(file string, as *syscall.Credential) (info fs.FileInfo, err error) {
	err = launch.AsUser(as, func() (err error) {
		info, err = os.Stat(file)
		return err
	})
	return info, err
}

// explainFile returns why the kernel did not execute the program's file.
func (p *Program) explainFile(dir string, err error) string {
	file := p.Path
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	var mode fs.FileMode
	var statErr error
	interpreter := p.by
	if interpreter == "" { // otherwise the file is the task's script, in a directory that the user may not enter
		var info fs.FileInfo
		if info, statErr = statAs(file, p.As); statErr == nil {
			mode = info.Mode()
		}
		if statErr == nil && mode.IsRegular() {
			interpreter = interpreterOf(file, p.As)
		}
	}
	switch {
	case errors.Is(statErr, fs.ErrNotExist):
		return "command " + p.Path + ": not found"
	case errors.Is(statErr, fs.ErrPermission) && p.As != nil:
		return fmt.Sprintf("command %s: user %d, who runs the job's tasks, may not reach the file; its owner can allow this: %ssetfacl -m u:%d:rx %s", p.Path, p.As.Uid, p.openAbove(file), p.As.Uid, file)
	case statErr != nil:
		return "command " + p.Path + ": " + ReasonOf(statErr)
	case mode.IsDir():
		return "command " + p.Path + ": is a directory"
	case interpreter != "" && err == syscall.ENOENT:
		return "interpreter " + interpreter + ": not found"
	case interpreter != "" && (err == syscall.EACCES || err == syscall.ENOEXEC):
		return "interpreter " + interpreter + ": " + ReasonOf(err)
	case err == syscall.ENOENT:
		return "command " + p.Path + ": its loader is not found; perhaps the program is built for another system"
	case err == syscall.ENOEXEC:
		return "command " + p.Path + ": is not a program, and its first line names no interpreter"
	case err == syscall.EACCES:
		return "command " + p.Path + ": not permitted; is it executable?"
	}
	return "command " + p.Path + ": " + ReasonOf(err)
}

// interpreterOf returns the interpreter in the first line of a file. It returns "" if there is none or the task's user
// may not read the file.
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

// ReasonOf returns the system's text for an error, without path names, which the caller adds.
func ReasonOf(err error) string {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		if number == syscall.EPERM || number == syscall.EACCES {
			return "not permitted"
		}
		return number.Error()
	}
	return err.Error()
}
