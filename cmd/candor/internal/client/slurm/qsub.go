package slurm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/cmd/candor/internal/client/submit"
)

// qsub submits a script with lines of PBS or Grid Engine, and prints the job's number as that system does.
func qsub(ctx context.Context, c *call, args []string) error {
	options, words := jobfile.SplitQsub(args)
	source, name, err := []byte(nil), "STDIN", error(nil)
	binary := slices.Index(options, "-b")
	if isCommand := len(options) < len(args) && args[len(options)] == "--" || binary >= 0 && binary+1 < len(options) && strings.HasPrefix(options[binary+1], "y"); isCommand && len(words) > 0 {
		source, name, words = jobfile.Command(words), filepath.Base(words[0]), nil
	} else if len(words) == 0 {
		source, err = io.ReadAll(io.LimitReader(c.Input(), jobfile.MaxDocument+1))
	} else if source, err = os.ReadFile(words[0]); err == nil {
		name, words = filepath.Base(words[0]), words[1:]
	}
	if err == nil && len(source) > jobfile.MaxDocument {
		err = errors.New("the script is too long")
	}
	if err != nil {
		return err
	}
	source, gridEngine, err := jobfile.ForQsub(source, options)
	if err != nil {
		return err
	}
	job, err := c.read(jobfile.NewOptions(c.Lookup), source, name, words)
	if err != nil {
		return err
	}
	redirect(job)
	s, replies, err := submit.SendAll(ctx, c.App, job, false)
	if err != nil {
		return err
	}
	defer s.Bus.Close()
	reply := replies[0]
	c.warnReply(reply)
	array := job.Spec.Stages[0].Array
	if array == nil {
		array = job.Splits()
	}
	switch {
	case slices.Contains(options, "-terse"):
		_, err = fmt.Fprintln(c.Out, reply.Job)
	case gridEngine && array != nil:
		_, err = fmt.Fprintf(c.Out, "Your job-array %v.%d-%d:%d (%q) has been submitted\n", reply.Job, array.At(0), array.At(array.Count()-1), array[0].Step, job.Spec.Name)
	case gridEngine:
		_, err = fmt.Fprintf(c.Out, "Your job %v (%q) has been submitted\n", reply.Job, job.Spec.Name)
	case array != nil:
		_, err = fmt.Fprintf(c.Out, "%v[].%s\n", reply.Job, s.Site)
	default:
		_, err = fmt.Fprintf(c.Out, "%v.%s\n", reply.Job, s.Site)
	}
	if err != nil {
		return submit.Unsaid(reply, err)
	}
	if job.Options.Wait { // qsub -sync y, and -W block=true
		return c.awaitAll(ctx, s, replies)
	}
	return nil
}

// qdel cancels jobs by the numbers that qsub prints: "7.site", "7[].site", "7[3].site" and "7".
func qdel(ctx context.Context, c *call, args []string) error {
	return scancel(ctx, c, jobsOfQsub(args))
}
