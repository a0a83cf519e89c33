package client

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// travels reports whether files go with a job: its tasks then run in directories
// of their own.
func travels(job *jobfile.Job) bool {
	return len(job.Inputs) > 0 || slices.ContainsFunc(job.Spec.Stages, func(s messages.Stage) bool { return s.Travels() })
}

// describeInputs makes the files of the user's inputs of their stages, known by
// what is in them. Nothing is sent.
func (a *app) describeInputs(job *jobfile.Job) error {
	known := map[string]messages.File{}
	for i := range job.Inputs {
		in := &job.Inputs[i]
		path, err := a.fromHere(in.Path)
		if err != nil {
			return err
		}
		f, seen := known[path]
		if !seen {
			if f, err = describe(path, in.Path); err != nil {
				return err
			}
			known[path] = f
		}
		f.Name, in.Path = in.Name, path
		stage := &job.Spec.Stages[in.Stage]
		stage.Inputs = append(stage.Inputs, f)
	}
	return nil
}

// fromHere is a path seen from the user's current directory.
func (a *app) fromHere(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	here, err := a.workdir()
	if err != nil {
		return "", usagef("the current directory is not known (%v): give whole paths", err)
	}
	return filepath.Join(here, path), nil
}

// describe reads a file, which the user calls by another name.
func describe(path, called string) (messages.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return messages.File{}, usagef("input %s: %v", called, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return messages.File{}, usagef("input %s: is not a regular file: put a directory in an archive", called)
	}
	f, err := bus.Digest(called, file)
	if err != nil {
		return f, within("input", err)
	}
	f.Executable = info.Mode()&0o100 != 0
	return f, nil
}

// sendInputs stores the inputs that the site does not have yet.
func (a *app) sendInputs(ctx context.Context, s *session, job *jobfile.Job) error {
	sent := map[string]bool{}
	for _, in := range job.Inputs {
		inputs := job.Spec.Stages[in.Stage].Inputs
		f := inputs[slices.IndexFunc(inputs, func(f messages.File) bool { return f.Name == in.Name })]
		if sent[f.Digest] {
			continue
		}
		sent[f.Digest] = true
		if err := sendInput(ctx, s, in.Path, f); err != nil {
			return within("input "+in.Name, err)
		}
	}
	return nil
}

func sendInput(ctx context.Context, s *session, path string, f messages.File) error {
	file, err := os.Open(path)
	if err != nil {
		return usagef("%v", err)
	}
	defer file.Close()
	_, err = bus.SendFile(ctx, s.bus, messages.Subject(s.site, messages.Depot, messages.VerbPut, s.account), messages.Attempt{}, f, file)
	return err
}
