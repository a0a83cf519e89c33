package submit

import (
	"context"
	"os"
	"slices"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// travels reports whether files are sent with a job. If so, each task runs in its own directory.
func travels(job *jobfile.Job) bool {
	return len(job.Inputs) > 0 || slices.ContainsFunc(job.Spec.Stages, func(s jobmsg.Stage) bool { return s.Travels() })
}

// describeInputs adds the user's files to the inputs of their stages, with the hashes of their contents.
func describeInputs(a *cli.App, job *jobfile.Job) error {
	known := map[string]jobmsg.File{}
	for i := range job.Inputs {
		in := &job.Inputs[i]
		path, err := a.FromHere(in.Path)
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

// describe returns the hash and size of a file. The argument `called` is the name that tasks see.
func describe(path, called string) (jobmsg.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return jobmsg.File{}, cli.Usagef("input %s: %v", called, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return jobmsg.File{}, cli.Usagef("input %s: is not a regular file: put a directory in an archive", called)
	}
	f, err := bus.Digest(called, file)
	if err != nil {
		return f, cli.Within("input", err)
	}
	f.Executable = info.Mode()&0o100 != 0
	return f, nil
}

// sendInputs sends the inputs of a job to the site, except inputs that the site already has. In a dry run it sends
// nothing. `sent` has the digests of the inputs that the site already has.
func sendInputs(ctx context.Context, s *cli.Session, job *jobfile.Job, request *jobmsg.SubmitRequest, sent map[string]bool) error {
	if request.DryRun {
		return nil
	}
	for _, in := range job.Inputs {
		inputs := job.Spec.Stages[in.Stage].Inputs
		f := inputs[slices.IndexFunc(inputs, func(f jobmsg.File) bool { return f.Name == in.Name })]
		if sent[f.Digest] {
			continue
		}
		if err := sendInput(ctx, s, in.Path, f); err != nil {
			return cli.Within("input "+in.Name, err)
		}
		sent[f.Digest] = true
	}
	return nil
}

func sendInput(ctx context.Context, s *cli.Session, path string, f jobmsg.File) error {
	file, err := os.Open(path)
	if err != nil {
		return cli.Usagef("%v", err)
	}
	defer file.Close()
	_, err = bus.SendFile(ctx, s.Bus, messages.Subject(s.Site, messages.Depot, jobmsg.VerbPut, s.Account), messages.Attempt{}, f, file)
	return err
}
