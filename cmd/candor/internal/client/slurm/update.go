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
	"github.com/candor-grid/candor/messages"
)

// update changes jobs, as in "JobId=7 TimeLimit=30 JobName=x" or "job 7 TimeLimit=30".
func update(ctx context.Context, s *cli.Session, words []string) error {
	if len(words) > 1 && (strings.EqualFold(words[0], "job") || strings.EqualFold(words[0], "jobid")) {
		words = append([]string{"jobid=" + words[1]}, words[2:]...)
	}
	var named []string
	change := messages.ChangeRequest{}
	for _, word := range words {
		key, value, given := strings.Cut(word, "=")
		if key = strings.ToLower(key); !given || value == "" {
			return fmt.Errorf("Update of this parameter is not supported: %s", word)
		}
		var err error
		switch key {
		case "jobid", "job":
			named = append(named, value)
		case "timelimit":
			change.TimeLimit, err = jobfile.ParseTime(value)
			if err == nil && change.TimeLimit == 0 {
				err = errors.New("a limit cannot be taken away from a job: name a time")
			}
		case "jobname", "name":
			change.Name = value
		case "arraytaskthrottle":
			var most int
			if most, err = strconv.Atoi(value); err != nil || most < 0 {
				err = fmt.Errorf("%q is not a number", value)
			}
			change.MaxRunning = &most
		default:
			return fmt.Errorf("Update of this parameter is not supported: %s: Candor changes TimeLimit, JobName and ArrayTaskThrottle; scontrol hold and candor change do more", word)
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
		if _, err := ask[messages.ChangeReply](ctx, s, messages.VerbChange, change); err != nil {
			return err
		}
	}
	return nil
}
