package nodeagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// luggage is what an agent has to know at the end of a task with files.
type luggage struct {
	Inputs  []messages.File `json:"inputs,omitempty"`
	Outputs []string        `json:"outputs,omitempty"`
}

func luggageOf(p *messages.Program) *luggage { return &luggage{Inputs: p.Inputs, Outputs: p.Outputs} }

// settle stores what a task left, if it ended well, and takes away what it was
// given. A task whose outputs cannot be stored has failed.
func (a *Agent) settle(ctx context.Context, f messages.Finished, l *luggage) messages.Finished {
	dir := runner.KeptDir(a.c.Dir, f.Attempt)
	if f.Outcome == messages.Exited && f.ExitCode == 0 && len(l.Outputs) > 0 {
		ctx, cancel := context.WithTimeout(ctx, travelWithin)
		defer cancel()
		if err := a.deliver(ctx, f.Attempt, dir, l); err != nil {
			a.c.Log.Warn("outputs were not stored", zap.Any("attempt", f.Attempt), zap.Error(err))
			f = unstored(f, err, ctx)
		}
	}
	removeInputs(dir, l.Inputs)
	return f
}

// failedCode is the exit code of a task that ended well and whose outputs could not
// be stored.
const failedCode = 1

func unstored(f messages.Finished, err error, ctx context.Context) messages.Finished {
	f.ExitCode, f.Detail = failedCode, "ended well, but its outputs were not stored: "+sentence(err)
	switch kind := messages.KindOf(err); {
	case errors.Is(ctx.Err(), context.Canceled) || kind == messages.Fenced:
		f.Outcome = messages.Stopped
	case kind == messages.TooLarge:
		f.Outcome = messages.Exceeded
	}
	return f
}

// deliver stores the outputs of an attempt and says what they are.
func (a *Agent) deliver(ctx context.Context, attempt messages.Attempt, dir string, l *luggage) error {
	files, err := a.storeAll(ctx, attempt, dir, l)
	if err != nil {
		return err
	}
	_, err = bus.Call[messages.Empty](ctx, a.c.Bus, messages.Subject(a.c.Site, messages.Depot, messages.VerbDeliver, a.c.Node),
		messages.DeliverRequest{Attempt: attempt, Files: files})
	return err
}

// storeAll stores the files of a directory that match. All are looked at before
// the first is sent.
func (a *Agent) storeAll(ctx context.Context, attempt messages.Attempt, dir string, l *luggage) ([]messages.File, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the task wrote nothing
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	files, err := collect(root, l)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		file, err := open(root, f.Name)
		if err != nil {
			return nil, err
		}
		_, err = bus.SendFile(ctx, a.c.Bus, messages.Subject(a.c.Site, messages.Depot, messages.VerbGive, a.c.Node), attempt, f, file)
		file.Close()
		if err != nil {
			return nil, messages.Errorf(messages.KindOf(err), "%s: %s", f.Name, sentence(err))
		}
	}
	return files, nil
}

// collect lists the regular files that match an output pattern, in the order of
// their names, but for inputs as they were given. Links that lead out of the
// directory are as if they were not there.
func collect(root *os.Root, l *luggage) (files []messages.File, err error) {
	names, err := matching(root, l.Outputs)
	if err != nil {
		return nil, err
	}
	total := int64(0)
	for _, name := range names {
		f, err := describe(root, name)
		if err != nil {
			return nil, err
		}
		if f == nil || slices.ContainsFunc(l.Inputs, func(in messages.File) bool { return in.Name == name && in.Digest == f.Digest }) {
			continue
		}
		if total += f.Size; total > messages.MaxJobFiles {
			return nil, messages.Errorf(messages.TooLarge, "they are more than the limit of %d MiB for a task: keep large results elsewhere", messages.MaxJobFiles>>20)
		}
		if files = append(files, *f); len(files) > messages.MaxOutputs {
			return nil, messages.Errorf(messages.TooLarge, "they are more than the limit of %d files for a task: put them in an archive", messages.MaxOutputs)
		}
	}
	return files, nil
}

// matching returns the names that match any of some patterns, each once.
func matching(root *os.Root, patterns []string) (names []string, err error) {
	for _, pattern := range patterns {
		if err := messages.CheckFileName("output", pattern); err != nil {
			return nil, err
		}
		found, err := fs.Glob(root.FS(), pattern)
		if err != nil {
			return nil, messages.Errorf(messages.Invalid, "pattern %q: %v", pattern, err)
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// describe says what is in a file; nil if it is none that travels: the task's own
// regular files do, and not another user's to which it may have made a link.
func describe(root *os.Root, name string) (*messages.File, error) {
	file, err := open(root, name)
	if errors.Is(err, fs.ErrPermission) {
		return nil, messages.Errorf(messages.PermissionDenied, "%s: cannot be read: %v", name, err)
	}
	if err != nil {
		return nil, nil
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || !ownedAlike(root, info) {
		return nil, nil
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
		return nil, messages.Errorf(messages.Invalid, "%q: has a control character in its name", name)
	}
	f, err := bus.Digest(name, file)
	f.Executable = info.Mode()&0o100 != 0
	return &f, err
}

// open opens a file for reading without waiting for anybody, as a pipe would.
func open(root *os.Root, name string) (*os.File, error) {
	return root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// removeInputs takes away what a task was given, and its directory if nothing else
// is left there. What cannot be removed goes with the job's directory.
func removeInputs(dir string, inputs []messages.File) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return
	}
	defer root.Close()
	for _, f := range inputs {
		root.Remove(f.Name)
		for parent := filepath.Dir(f.Name); parent != "." && root.Remove(parent) == nil; {
			parent = filepath.Dir(parent)
		}
	}
	os.Remove(dir)
}

// notes counts the tasks in hand of the stages with files, by the path of what is
// noted about the stage.
type notes struct {
	mu    sync.Mutex
	users map[string]int
}

// noteLuggage writes down what the end of a stage's tasks needs, for an agent that
// finds them running. It is the same for all of them, and written once, whole or not
// at all. Each task drops it once it is settled.
func (a *Agent) noteLuggage(p *messages.Program) error {
	path := a.luggagePath(p.Job, p.Stage)
	a.luggage.mu.Lock()
	defer a.luggage.mu.Unlock()
	if a.luggage.users[path] == 0 {
		if err := writeLuggage(path, luggageOf(p)); err != nil {
			return messages.Errorf(messages.Unavailable, "files cannot be noted: %v", err)
		}
	}
	a.luggage.users[path]++
	return nil
}

// writeLuggage writes aside and then gives the name: half a note would have the
// outputs of tasks go unnoticed.
func writeLuggage(path string, l *luggage) error {
	text, err := json.Marshal(l)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path+".part", text, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".part", path)
	}
	return err
}

// dropLuggage removes a stage's note once no task in hand needs it. An agent that is
// about to go leaves it to the next one, which settles what this one could not.
func (a *Agent) dropLuggage(job messages.JobID, stage uint32) {
	path := a.luggagePath(job, stage)
	a.luggage.mu.Lock()
	defer a.luggage.mu.Unlock()
	if a.luggage.users[path] == 0 || a.life.Err() != nil {
		return
	}
	if a.luggage.users[path]--; a.luggage.users[path] == 0 {
		delete(a.luggage.users, path)
		os.Remove(path) // what stays is found at the next start
	}
}

// findLuggage is what an earlier agent noted of a task's stage, nil if it has no
// files.
func (a *Agent) findLuggage(t messages.TaskRef) *luggage {
	text, err := os.ReadFile(a.luggagePath(t.Job, t.Stage))
	if err != nil {
		return nil
	}
	l := new(luggage)
	if err := json.Unmarshal(text, l); err != nil {
		a.c.Log.Error("what the tasks of a stage leave is not known", zap.Any("task", t), zap.Error(err))
		return nil
	}
	return l
}

// forgetLuggage removes the notes of stages of which no task runs any more, and
// counts those that do.
func (a *Agent) forgetLuggage(running []runner.Adopted) {
	if a.c.Dir == "" {
		return
	}
	old, _ := os.ReadDir(filepath.Dir(a.luggagePath(0, 0)))
	for _, e := range old {
		needed := func(t runner.Adopted) bool {
			return filepath.Base(a.luggagePath(t.Attempt.Task.Job, t.Attempt.Task.Stage)) == e.Name()
		}
		if !slices.ContainsFunc(running, needed) {
			os.Remove(filepath.Join(filepath.Dir(a.luggagePath(0, 0)), e.Name()))
		}
	}
	a.luggage.mu.Lock()
	defer a.luggage.mu.Unlock()
	for _, t := range running {
		a.luggage.users[a.luggagePath(t.Attempt.Task.Job, t.Attempt.Task.Stage)]++
	}
}

func (a *Agent) luggagePath(job messages.JobID, stage uint32) string {
	return filepath.Join(a.c.Dir, "luggage", fmt.Sprintf("%d.%d.json", job, stage))
}
