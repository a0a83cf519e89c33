package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
)

type fetchQuery struct {
	logsQuery // which job, stage and task
	into      string
	list      bool
	force     bool
}

func fetchCommand(a *cli.App) *cobra.Command {
	q := fetchQuery{}
	cmd := &cobra.Command{
		Use:   "fetch NUMBER",
		Short: "get the files that the tasks of a job left",
		Long: `Get the files of a job's tasks that match the --output patterns of the job, and
check that each file is complete. The files of one task keep their names. The
files of several tasks are put into one directory for each task, such as main.3.
A different file of the same name is only overwritten with --force.

The files of a task are there when the task has ended. The site keeps the files
for two weeks, or as long as its operator has set. Operators can get the files
of all jobs; the site logs each such access.`,
		Example: `  candor submit --budget 5 --input data.csv \
      --output 'result-*.csv' --wait run.sh
  candor fetch 17
  candor fetch 17 --list
  candor fetch 17 --task 3 -o results`,
		RunE: a.Online(q.ofJob(func(ctx context.Context, s *cli.Session, args []string) error {
			if q.list && q.into != "." {
				if err := a.Form(q.into); err != nil {
					return cli.Usagef("-o %s: with --list, -o is the form of the table: wide, name or json", q.into)
				}
			}
			return fetch(ctx, a, s, q)
		})),
		ValidArgsFunction: a.CompleteJobs(false),
	}
	cmd.Flags().StringVarP(&q.into, "output-dir", "o", ".", "`directory` to put the files in, created if missing;\nwith --list the form of the table: wide, name or json")
	q.flags(cmd)
	cmd.Flags().BoolVarP(&q.list, "list", "l", false, "only list the files")
	cmd.Flags().BoolVar(&q.force, "force", false, "overwrite files that differ")
	return cmd
}

func fetch(ctx context.Context, a *cli.App, s *cli.Session, q fetchQuery) error {
	r, err := newReader(ctx, a, s, q.logsQuery)
	if err != nil {
		return err
	}
	all, err := outputsOf(ctx, r)
	if err != nil {
		return err
	}
	lost := unlisted(r, all)
	if len(all) == 0 {
		return cmp.Or(lost, nothingLeft(r))
	}
	if !q.list {
		if err := fetchAll(ctx, a, r, q, all); err != nil {
			return err
		}
	}
	err = a.Show(job.OutputsReply{Tasks: all}, func(p *cli.Page) {
		if !slices.ContainsFunc(all, func(t job.TaskOutputs) bool { return len(t.Files) > 0 }) {
			p.Printf("No file of %s fits the --output patterns of job %v: %s\n", terminal.Plural(len(all), "ended task"), r.job.Job, patterns(r))
			return
		}
		writeOutputs(p, r, all)
	})
	return cmp.Or(lost, err)
}

func patterns(r *logReader) string {
	var all []string
	for i := range r.job.Spec.Stages {
		if r.stage != nil && i != *r.stage {
			continue
		}
		for _, pattern := range r.job.Spec.Stages[i].Outputs {
			if !slices.Contains(all, pattern) {
				all = append(all, pattern)
			}
		}
	}
	return terminal.Safe(strings.Join(all, ", "))
}

// unlisted checks that the depot, the site's store of files, has a list of output files for each task that ended well.
// It returns an error if a list is missing. Each such task leaves a list, so a missing list was lost, or was removed
// because of its age.
func unlisted(r *logReader, all []job.TaskOutputs) error {
	want := 0
	for i, stage := range r.job.Stages {
		if r.stage != nil && i != *r.stage || len(r.job.Spec.Stages[i].Outputs) == 0 {
			continue
		}
		tasks := int(stage.Tasks)
		if r.query.task >= 0 {
			tasks = min(1, max(0, tasks-r.query.task))
		}
		want += tasks
	}
	if r.job.State != job.Completed || len(all) >= want {
		return nil
	}
	return messages.Errorf(messages.NotFound, "job %v ended well, but the site has no list of the files of %d of %s: the site removed the files after their time (two weeks by default), or its store of files was damaged; ask an operator",
		r.job.Job, want-len(all), terminal.Plural(want, "task"))
}

func nothingLeft(r *logReader) error {
	job := &r.job
	for _, stage := range job.Spec.Stages {
		if len(stage.Outputs) > 0 {
			return messages.Errorf(messages.NotFound, "job %v is %v, and %s: the site keeps the files that match --output when a task has ended well, for a time that the operator sets", job.Job, job.State, r.noneHas("left files"))
		}
	}
	return messages.Errorf(messages.NotFound, "job %v keeps no files: name files with --output when you submit a job; \"candor logs %v\" prints the output of the tasks", job.Job, job.Job)
}

func outputsOf(ctx context.Context, r *logReader) (all []job.TaskOutputs, err error) {
	for i, stage := range r.job.Stages {
		if r.stage != nil && i != *r.stage || len(r.job.Spec.Stages[i].Outputs) == 0 {
			continue
		}
		ask := job.OutputsRequest{Job: r.query.job, Stage: uint32(i), Limit: cli.MaxPage, Account: r.job.Account}
		end := uint32(stage.Tasks)
		if r.query.task >= 0 {
			ask.From, ask.Limit = uint32(r.query.task), 1
			end = min(end, ask.From+1)
		}
		for ask.From < end {
			reply, err := cli.Call[job.OutputsReply](ctx, r.session, messages.Depot, job.VerbOutputs, ask)
			if err != nil {
				return nil, err
			}
			if all = append(all, reply.Tasks...); reply.Next <= ask.From {
				return nil, messages.Errorf(messages.Internal, "the list of files is not complete: it ends after task %d; try again", ask.From)
			}
			ask.From = reply.Next
		}
	}
	return all, nil
}

func fetchAll(ctx context.Context, a *cli.App, r *logReader, q fetchQuery, all []job.TaskOutputs) error {
	dir, err := a.FromHere(q.into)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return cli.Usagef("--output-dir: %v", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return cli.Usagef("--output-dir: %v", err)
	}
	defer root.Close()
	for _, t := range all {
		for _, f := range t.Files {
			if err := fetchFile(ctx, r, root, t.Attempt, f, q.force); err != nil {
				return cli.Within(r.name(t.Attempt.Task)+": "+f.Name, err)
			}
		}
	}
	return nil
}

// local returns the local path of a task's file, relative to the target directory.
func (r *logReader) local(t messages.TaskRef, f job.File) string {
	if r.selected == 1 {
		return f.Name
	}
	return path.Join(r.name(t), f.Name)
}

// The names of incomplete files end in ".part". longestName is the maximum length of a file's name in bytes.
const (
	part        = ".part"
	longestName = 255
)

// fetchFile copies a file under a temporary name, and renames it when it is complete.
func fetchFile(ctx context.Context, r *logReader, root *os.Root, t messages.Attempt, f job.File, force bool) error {
	if err := job.CheckFileName("name", f.Name); err != nil {
		return err
	}
	name := filepath.FromSlash(r.local(t.Task, f))
	if same, err := sameFile(root, name, f); same || err != nil && !force {
		return err
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return cli.Usagef("%v", err)
	}
	mode := fs.FileMode(0o666)
	if f.Executable {
		mode = 0o777
	}
	base := filepath.Base(name)
	aside := filepath.Join(filepath.Dir(name), base[:min(len(base), longestName-len(part))]+part)
	file, err := root.OpenFile(aside, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|syscall.O_NONBLOCK, mode)
	if err != nil {
		return cli.Usagef("%v", err)
	}
	subject := messages.Subject(r.session.Site, messages.Depot, job.VerbGet, r.session.Account)
	err = bus.ReceiveFileOf(ctx, r.session.Bus, subject, r.job.Account, t, f, file)
	if err = errors.Join(err, file.Close()); err == nil {
		return root.Rename(aside, name)
	}
	return errors.Join(err, root.Remove(aside))
}

// sameFile reports whether the same file is already there. If another file has the name, it returns an error.
func sameFile(root *os.Root, name string, f job.File) (bool, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // without this flag, opening a pipe would wait for a writer
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, cli.Usagef("%v", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		if found, err := bus.Digest(name, file); err == nil && found.Digest == f.Digest {
			return true, nil
		}
	}
	return false, messages.Errorf(messages.Conflict, "another file of this name exists: choose another directory with -o, or overwrite the file with --force")
}

func writeOutputs(p *cli.Page, r *logReader, all []job.TaskOutputs) {
	t := terminal.NewTable("~FILE|>BYTES|~TASK|~SHA-256")
	for _, task := range all {
		for _, f := range task.Files {
			t.Row(r.local(task.Attempt.Task, f), fmt.Sprint(f.Size), r.name(task.Attempt.Task), f.Digest)
		}
	}
	p.Table(t, "")
}
