package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"context"
	"errors"
	"fmt"

	"github.com/candor-grid/candor/messages"
)

// seff prints how much of its processors and memory each job used, as Slurm's script seff does.
func seff(ctx context.Context, c *call, args []string) error {
	c.ignore([]string{"M"}, []string{"debug/d", "verbose/v"})
	words, done, err := c.parse(args)
	if done || err != nil {
		return err
	}
	q := query{everybody: true, tasks: true, details: true, elements: true}
	if q.targets, err = targets(words...); err != nil || len(q.targets) == 0 {
		return errors.Join(err, errors.New("name a job: seff JOB"))
	}
	s, err := c.dial()
	if err != nil {
		return err
	}
	defer s.Bus.Close()
	rows, err := q.list(ctx, s)
	if err == nil && len(rows) == 0 {
		err = errors.New("Job not found.")
	}
	for i := range rows {
		if i > 0 {
			fmt.Fprintln(c.Out)
		}
		fmt.Fprint(c.Out, rows[i].efficiency(s.Site, messages.TimeOf(c.Now())))
	}
	return err
}

func (r *row) efficiency(cluster string, now messages.Time) string {
	text := fmt.Sprintf("Job ID: %v\n", r.number())
	if r.index != "" {
		text += fmt.Sprintf("Array Job ID: %s\n", r.id())
	}
	text += fmt.Sprintf("Cluster: %s\nUser/Group: %s/%s\nState: %s", cluster, r.Account, r.Account, r.state.long)
	if r.began == 0 || !r.state.ended() {
		return text + fmt.Sprintf("\nEfficiency not available for %s jobs: the site knows what a job used when it has ended.\n", r.state.long)
	}
	text += fmt.Sprintf(" (exit code %d)\n", max(r.ExitCode, 0))
	if r.nodes() > 1 {
		text += fmt.Sprintf("Nodes: %d\nCores per node: %d\n", r.nodes(), r.cpus()/r.nodes())
	} else {
		text += fmt.Sprintf("Cores: %d\n", r.cpus())
	}
	wall := r.elapsed(now)
	all := wall * messages.Duration(r.cpus())
	text += fmt.Sprintf("CPU Utilized: %s\nCPU Efficiency: %.2f%% of %s core-walltime\nJob Wall-clock time: %s\n",
		longClock(r.cpu), 100*float64(r.cpu)/float64(max(all, 1)), longClock(all), longClock(wall))
	if r.rss == 0 {
		return text + "Memory Utilized: unknown\n"
	}
	text += fmt.Sprintf("Memory Utilized: %s\n", inBytes(r.rss))
	if has := r.detail.Spec.Stages[0].Memory; has > 0 {
		text += fmt.Sprintf("Memory Efficiency: %.2f%% of %s (of the node that used most)\n", 100*float64(r.rss)/float64(has), inBytes(has))
	}
	return text
}

// inBytes writes a number of bytes with a unit, as seff does: "1.50 GB".
func inBytes(bytes int64) string {
	n, units := float64(bytes)/(1<<10), []string{"KB", "MB", "GB", "TB", "PB"}
	for n >= 1<<10 && len(units) > 1 {
		n, units = n/(1<<10), units[1:]
	}
	return fmt.Sprintf("%.2f %s", n, units[0])
}
