package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/candor-grid/candor/nodeagent/runner/cell"
)

// limit measures how fast processes could be run at best. It gives each process only what every task needs: a session,
// a control group, an output file, and a record of its end. It forks as the executor does: the child shares its
// parent's memory until it executes the program (CLONE_VFORK).
type limit struct {
	dir   string
	cells *cell.Cells
	ends  *os.File
}

func openLimit() (*limit, error) {
	dir, err := os.MkdirTemp("", "candor-limit-")
	if err != nil {
		return nil, err
	}
	ends, err := os.OpenFile(filepath.Join(dir, "ends"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &limit{dir: dir, cells: cell.Open(filepath.Base(dir)), ends: ends}, nil
}

func (l *limit) close() error {
	return errors.Join(l.cells.Close(), l.ends.Close(), os.RemoveAll(l.dir))
}

// startAndWait starts one process in a cell (a control group), as an agent starts a task, and waits for it. The
// argument `number` is the name of its output file.
func (l *limit) startAndWait(number int) error {
	in, err := l.cells.Take(cell.Limits{}, nil)
	if err != nil {
		return err
	}
	defer l.cells.Leave(in)
	out, err := os.OpenFile(filepath.Join(l.dir, fmt.Sprint(number)), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	var p *os.Process
	in.Run(func() {
		attributes := &syscall.SysProcAttr{Setsid: true}
		in.Attributes(attributes)
		p, err = os.StartProcess("/bin/true", []string{"/bin/true"}, &os.ProcAttr{Env: []string{}, Files: []*os.File{nil, out, out}, Sys: attributes})
	})
	if err != nil {
		return err
	}
	state, err := p.Wait()
	if err == nil {
		_, err = fmt.Fprintln(l.ends, number, state.ExitCode())
	}
	return err
}
