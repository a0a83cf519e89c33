package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
)

// program is what the tasks of one stage share, worked out once.
type program struct {
	path   string   // what is executed
	argv   []string // its arguments
	env    []string
	dir    string              // working directory; "": one of each task's own
	script string              // the file it is in, if it is a script
	as     *syscall.Credential // nil: as this process
	// homeless: a task's home is its working directory.
	homeless bool
}

const (
	shell        = "/bin/sh"
	privateFiles = 0o600
	privateDirs  = 0o700
	// throughDirs can be passed by those who know the name of what is inside.
	throughDirs = 0o711
)

// newProgram works a program out. The job's directory must be there, for the
// script to be written to.
func (c *Config) newProgram(p *messages.Program, jobDir string) (*program, error) {
	if p.Dir != "" && !filepath.IsAbs(p.Dir) {
		return nil, messages.Errorf(messages.Invalid, "working directory %q: must be an absolute path", p.Dir)
	}
	who, err := c.identity(p)
	if err != nil {
		return nil, err
	}
	env, err := c.programEnv(p, who.baseEnv())
	if err != nil {
		return nil, err
	}
	_, home := valueOf(env, "HOME")
	out := &program{env: env, dir: p.Dir, argv: p.Command, as: who.as, homeless: !home}
	switch {
	case (len(p.Command) == 0) == (p.Script == ""):
		return nil, messages.Errorf(messages.Invalid, "stage %q: needs either a command or a script", p.StageName)
	case p.Script != "":
		err = out.useScript(p.Script, filepath.Join(jobDir, strconv.Itoa(int(p.Stage))+".script"))
	default:
		out.path, err = lookUp(p.Command[0], env)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// useScript writes a script to a file and runs it.
func (p *program) useScript(script, file string) error {
	if err := writeExecutable(file, script); err != nil {
		return messages.Errorf(messages.Unavailable, "the script could not be written: %v", err)
	}
	if p.as != nil {
		if err := os.Chown(file, int(p.as.Uid), int(p.as.Gid)); err != nil {
			return messages.Errorf(messages.Unavailable, "the script could not be given to the task's user: %v", err)
		}
	}
	p.script = file
	if strings.HasPrefix(script, "#!") {
		p.path, p.argv = file, []string{file}
		return nil
	}
	p.path, p.argv = shell, []string{shell, file}
	return nil
}

// writeExecutable writes a file that can be executed at once: a child forked
// meanwhile would keep it open for writing, and executing it would fail with
// "text file busy", so no child is forked meanwhile.
func writeExecutable(file, text string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, privateDirs) // no link that a task made
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// lookUp finds a command in the PATH of an environment. A name with a slash
// is taken as it is, from the working directory.
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
	return "", messages.Errorf(messages.NotFound, "command %q: not found in PATH=%s of this node", command, path)
}

func executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && unix.Access(file, unix.X_OK) == nil
}

// isRoot reports whether tasks run as the super-user.
func (p *program) isRoot() bool { return p.as == nil && unix.Geteuid() == 0 }

// explain says why a program could not be executed, from the outside: the
// kernel's answer does not tell which of the files it means.
func (p *program) explain(dir string, err error) string {
	var contained *messages.Error
	if errors.As(err, &contained) {
		return contained.Message
	}
	switch info, dirErr := os.Stat(dir); {
	case dirErr != nil:
		return "working directory: " + dirErr.Error()
	case !info.IsDir():
		return "working directory " + dir + ": is not a directory"
	case mayEnter(dir, p.as) != nil && p.as != nil:
		return fmt.Sprintf("working directory %s: user %d, as whom the job's tasks run on this node, may not go there; its owner can allow it: setfacl -m u:%d:rwx %s", dir, p.as.Uid, p.as.Uid, dir)
	case mayEnter(dir, p.as) != nil:
		return "working directory " + dir + ": permission denied"
	}
	file := p.path
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	if _, fileErr := os.Stat(file); fileErr == nil && err == syscall.ENOENT {
		return p.path + ": the interpreter that its first line names does not exist"
	}
	return p.path + ": " + err.Error()
}
