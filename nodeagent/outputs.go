package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner/store"
)

// settle stores the output files of a task that ended well, and removes the input files of the task. If an output
// cannot be stored, the task counts as failed. If this is because some files have unsuitable names or permissions,
// settle stores the other files. The task is then not run again, because it would leave the same unsuitable files.
func (f *files) settle(ctx context.Context, end agent.Finished, l *manifest) agent.Finished {
	dir := store.KeptDir(f.dir, l.Account, end.Attempt)
	if end.Outcome == agent.Exited && end.ExitCode == 0 && len(l.Outputs) > 0 {
		ctx, cancel := context.WithTimeout(ctx, filesWithin)
		defer cancel()
		if err := f.store(ctx, end.Attempt, dir, l); err != nil {
			f.log.Warn("outputs were not stored", zap.Any("attempt", end.Attempt), zap.Error(err))
			end = unstored(end, err, ctx)
		}
	}
	removeInputs(dir, l.Inputs)
	f.manifests.remove(end.Attempt.Task.Job, end.Attempt.Task.Stage)
	return end
}

// failedCode is the exit code of a task whose program succeeded, but whose outputs could not be stored.
const failedCode = 1

func unstored(f agent.Finished, err error, ctx context.Context) agent.Finished {
	f.ExitCode, f.Detail = failedCode, "ended well, but its outputs were not stored: "+messages.Detail(err)
	switch kind := messages.KindOf(err); {
	case errors.Is(ctx.Err(), context.Canceled) || kind == messages.Fenced:
		f.Outcome = agent.Stopped
	case kind == messages.TooLarge:
		f.Outcome = agent.Exceeded // with this outcome, the task is not run again
	}
	return f
}

// store stores the output files of an attempt in the depot. Then it gives the depot the list of these files.
func (f *files) store(ctx context.Context, attempt messages.Attempt, dir string, l *manifest) error {
	stored, refused, err := f.storeAll(ctx, attempt, dir, l)
	if err != nil {
		return err
	}
	if _, err = bus.Call[messages.Empty](ctx, f.bus, f.subject(job.VerbDeliver), job.DeliverRequest{Attempt: attempt, Files: stored}); err != nil {
		return err
	}
	return refusal(refused, len(stored))
}

// mostNamed bounds how many refused files an error names.
const mostNamed = 3

// refusal returns an error of kind Exceeded that names the refused files, or nil if all files were stored.
func refusal(refused []error, stored int) error {
	if len(refused) == 0 {
		return nil
	}
	var all []string
	for _, err := range refused[:min(mostNamed, len(refused))] {
		all = append(all, messages.Detail(err))
	}
	if more := len(refused) - len(all); more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return messages.Errorf(messages.TooLarge, "%s; files stored: %d", strings.Join(all, "; "), stored)
}

// storeAll stores the files of a directory that match the output patterns of the manifest. It first checks all of them.
// It returns errors for the files that it refuses.
func (f *files) storeAll(ctx context.Context, attempt messages.Attempt, dir string, l *manifest) (stored []job.File, refused []error, err error) {
	root, err := store.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil // the task wrote no files
	}
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	outputs, refused, err := collect(ctx, root, l)
	if err != nil {
		return nil, nil, err
	}
	for _, o := range outputs {
		file, err := open(root, o.Name)
		if err != nil {
			return nil, nil, err
		}
		_, err = bus.SendFile(ctx, f.bus, f.subject(job.VerbGive), attempt, o, file)
		file.Close()
		if err != nil {
			return nil, nil, messages.Errorf(messages.KindOf(err), "%s: %s", o.Name, messages.Detail(err))
		}
	}
	return outputs, refused, nil
}

// collect lists the regular files that match an output pattern, sorted by name. It leaves out unchanged inputs, and
// links that lead out of the directory. The result `refused` has an error for each refused file.
func collect(ctx context.Context, root *os.Root, l *manifest) (files []job.File, refused []error, err error) {
	names, err := matching(ctx, root, l.Outputs, mostEntries)
	if err != nil {
		return nil, nil, err
	}
	total := int64(0)
	for _, name := range names {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		f, err := describe(root, name)
		if kind := messages.KindOf(err); kind == messages.Invalid || kind == messages.PermissionDenied {
			refused = append(refused, err)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if f == nil || slices.ContainsFunc(l.Inputs, func(in job.File) bool { return in.Name == name && in.Digest == f.Digest }) {
			continue
		}
		if total += f.Size; total > job.MaxJobFiles {
			return nil, nil, errTooLarge
		}
		if files = append(files, *f); len(files) > job.MaxOutputs {
			return nil, nil, messages.Errorf(messages.TooLarge, "the output files are more than the limit of %d for a task: put them in an archive", job.MaxOutputs)
		}
	}
	return files, refused, nil
}

var errTooLarge = messages.Errorf(messages.TooLarge, "the output files have more than the limit of %d MiB for a task: keep large results elsewhere", job.MaxJobFiles>>20)

// describe returns the description of a file, or nil if it is not a regular file of the task's own: a task may have
// made a link to another user's file.
func describe(root *os.Root, name string) (*job.File, error) {
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
	if info.Size() > job.MaxJobFiles { // reading a file with large holes would take long
		return nil, errTooLarge
	}
	if !utf8.ValidString(name) {
		return nil, messages.Errorf(messages.Invalid, "%q: its name is not valid UTF-8", name)
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
		return nil, messages.Errorf(messages.Invalid, "%q: has a control character in its name", name)
	}
	f, err := bus.Digest(name, file)
	f.Executable = info.Mode()&0o100 != 0
	return &f, err
}

// open opens a file for reading. If the file is a pipe, it does not wait for a writer.
func open(root *os.Root, name string) (*os.File, error) {
	return root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// removeInputs removes the input files of a task, and the directory `dir` if it is then empty. Files that it cannot
// remove are removed later, with the job's directory.
func removeInputs(dir string, inputs []job.File) {
	root, err := store.OpenRoot(dir)
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

// ownedAlike reports whether a file and its directory have the same owner.
func ownedAlike(root *os.Root, file fs.FileInfo) bool {
	dir, err := root.Stat(".")
	if err != nil {
		return false
	}
	a, _ := dir.Sys().(*syscall.Stat_t)
	b, _ := file.Sys().(*syscall.Stat_t)
	return a != nil && b != nil && a.Uid == b.Uid
}
