package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/cmd/candor/internal/client/submit"
	"github.com/candor-grid/candor/messages/job"
)

// update changes jobs, as in "JobId=7 TimeLimit=30 JobName=x" or "job 7 TimeLimit=30".
func (c *call) update(ctx context.Context, s *cli.Session, words []string) error {
	if len(words) > 1 && (strings.EqualFold(words[0], "job") || strings.EqualFold(words[0], "jobid")) {
		words = append([]string{"jobid=" + words[1]}, words[2:]...)
	}
	var named []string
	change := job.ChangeRequest{}
	for _, word := range words {
		key, value, given := strings.Cut(word, "=")
		key = strings.ToLower(key)
		if !given || value == "" && key != "comment" && key != "dependency" {
			return fmt.Errorf("Update of this parameter is not supported: %s", word)
		}
		var err error
		switch key {
		case "jobid", "job":
			named = append(named, value)
		case "dependency":
			change.Waits, err = c.conditions(ctx, s, value)
		default:
			err = set(&change, key, value)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", word, err)
		}
	}
	list, err := someTargets(ctx, s, named)
	if err != nil {
		return err
	}
	for _, t := range list {
		if t.indices != nil {
			return errors.New("elements of an array cannot be changed alone: name the job")
		}
		change.Key, change.Job = rand.Text(), t.job
		if _, err := ask[job.ChangeReply](ctx, s, job.VerbChange, change); err != nil {
			return err
		}
	}
	return nil
}

func set(change *job.ChangeRequest, key, value string) (err error) {
	switch key {
	case "timelimit":
		change.TimeLimit, err = jobfile.ParseTime(value)
		if err == nil && change.TimeLimit == 0 {
			err = errors.New("the time limit of a job cannot be removed: name a time")
		}
	case "jobname", "name":
		change.Name = value
	case "comment":
		change.Comment = &value
	case "arraytaskthrottle":
		most, failed := strconv.Atoi(value)
		if failed != nil || most < 0 {
			return fmt.Errorf("%q is not a number", value)
		}
		change.MaxRunning = &most
	case "partition", "account", "qos", "numnodes", "numcpus", "numtasks", "minmemorynode", "minmemorycpu", "nodelist", "reqnodelist", "features", "starttime", "eligibletime":
		return errors.New("the job's bid depends on this value, and a bid cannot be changed here: cancel the job and submit it again")
	case "priority", "nice":
		return errors.New("there are no priorities here: raise the bid of the job with \"candor change\" and --budget or --rate")
	default:
		return errors.New("Update of this parameter is not supported: Candor changes TimeLimit, JobName, Comment, Dependency and ArrayTaskThrottle; scontrol hold and candor change do more")
	}
	return err
}

// conditions reads the jobs that a job must wait for from now on. The argument `text` has the form of sbatch's option
// --dependency; "" means none.
func (c *call) conditions(ctx context.Context, s *cli.Session, text string) (*job.Conditions, error) {
	job := &jobfile.Job{Spec: job.JobSpec{Stages: make([]job.Stage, 1)}}
	if text == "" {
		return job.Spec.Conditions(), nil
	}
	o := jobfile.NewOptions(c.Lookup)
	_, err := o.SayWords([]string{"--dependency=" + text})
	if err == nil {
		err = o.Apply(job)
	}
	if err == nil && job.Spec.AfterEach != 0 || job.Names.Singleton {
		err = errors.New("aftercorr and singleton are possible only when a job is submitted")
	}
	if err == nil {
		err = submit.Await(ctx, s, job)
	}
	c.warn(job.Warnings)
	return job.Spec.Conditions(), err
}
