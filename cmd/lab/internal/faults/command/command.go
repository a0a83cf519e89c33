// Package command is the command line of `lab faults`. It runs sites in virtual time, under faults drawn from seeds.
package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/lab/internal/faults"
	"github.com/candor-grid/candor/messages"
)

type options struct {
	plan  string
	seeds int
	from  uint64
	json  bool
	bug   faults.Bug // bug that tests insert
}

func Command() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "faults PLAN",
		Short: "a federation in virtual time, under faults that seeds draw",
		Long: `Runs three sites (east, north, west) under faults. Each seed is another history.
After every step all invariants are checked. A plan is a file of YAML, in which
every field may be left out:

  jobs: 4                    # of each site's users, here and at other sites
  trades: 6                  # payments to other sites, and authorisations
  nodes: 2                   # of each site
  duration: 60s              # of the faults
  rates: {loss: 1.5}         # mean number of faults of each kind; the kinds:
                             # ` + strings.Join(faults.Kinds[:4], ", ") + `,
                             # ` + strings.Join(faults.Kinds[4:8], ", ") + `,
                             # ` + strings.Join(faults.Kinds[8:12], ", ") + `,
                             # ` + strings.Join(faults.Kinds[12:], ", ") + `

or, instead of rates, the faults themselves, as printed for a failing seed:

  seed: 7
  events:
  - {at: 20s, kind: isolate, target: north, for: 90s}
  - {at: 25s, kind: crash, target: west.m1, for: 10s}  # west.n0: an agent

Package faults defines the keys of --json.`,
		Example: "  lab faults plan.yaml --seeds 1000",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o.plan = args[0]
			return o.run(c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.IntVar(&o.seeds, "seeds", 100, "how many `runs`")
	f.Uint64Var(&o.from, "from-seed", 1, "the `seed` of the first run")
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	return c
}

const (
	mostSeeds   = 1_000_000
	largestPlan = 1 << 20 // largest file of a plan, in bytes
	// If a seed fails, the lab searches for a shorter plan that fails too. It does so for at most mostShrunk seeds,
	// because a search needs many runs. For other seeds, the report has the plan with all events.
	mostShrunk = 3
)

func readPlan(name string) (*faults.Plan, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, messages.Errorf(messages.NotFound, "the plan: %v", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, largestPlan+1))
	if err == nil && len(text) > largestPlan {
		err = errors.New("has more than 1 MiB")
	}
	if err != nil {
		return nil, messages.Errorf(messages.Invalid, "the plan: %s: %v", name, err)
	}
	return faults.Decode(name, text)
}

// run runs a plan with each seed. It prints each failing seed immediately, and a report at the end. A failed seed is an
// error.
func (o *options) run(out, stderr io.Writer) error {
	plan, err := readPlan(o.plan)
	if err != nil {
		return err
	}
	if o.seeds < 1 || o.seeds > mostSeeds {
		return messages.Errorf(messages.Invalid, "--seeds: must be from 1 to %d, is %d", mostSeeds, o.seeds)
	}
	if plan.Seed != 0 { // the plan's events were drawn with this seed
		o.from, o.seeds = plan.Seed, 1
	}
	report, err := o.report(plan, stderr)
	if err != nil {
		return err
	}
	if o.json {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		if err := e.Encode(report); err != nil {
			return err
		}
	} else {
		writeFaults(out, report)
	}
	if n := len(report.Violations); n > 0 {
		return messages.Errorf(messages.Internal, "%d of %d seeds violate an invariant; the printed plans replay these seeds", n, report.Seeds)
	}
	return nil
}

func (o *options) report(plan *faults.Plan, stderr io.Writer) (*faults.Report, error) {
	r := &faults.Report{}
	told := time.Now()
	for i := range o.seeds {
		if time.Since(told) > time.Minute {
			told = time.Now()
			fmt.Fprintf(stderr, "%d of %d seeds\n", i, o.seeds)
		}
		run := faults.Run(plan, o.from+uint64(i), o.bug)
		r.Add(&run)
		if run.Violation == nil {
			continue
		}
		fmt.Fprintf(stderr, "seed %d: %v\n", run.Seed, run.Violation)
		short := faults.Drawn(plan, run.Seed)
		if len(r.Violations) < mostShrunk {
			short = faults.Shrink(plan, run.Seed, o.bug)
		}
		text, err := short.YAML()
		if err != nil {
			return nil, err
		}
		r.Violations = append(r.Violations, faults.Violation{Seed: run.Seed, What: run.Violation.Error(), Plan: text, Story: faults.Tell(short, run.Seed, o.bug)})
	}
	return r, nil
}

func writeFaults(out io.Writer, r *faults.Report) {
	fmt.Fprintf(out, "seeds            %d\nsteps            %d\nentries checked  %d\njobs             %d, %d of other sites, %d ended while their site was cut off\ninstructions     %d\nsimulated hours  %.1f\nviolations       %d\n",
		r.Seeds, r.Steps, r.Applied, r.Jobs, r.Visits, r.Alone, r.Instructions, r.SimulatedHours, len(r.Violations))
	for _, k := range faults.Kinds {
		fmt.Fprintf(out, "  %-10s %d\n", k, r.Faults[k])
	}
	for _, v := range r.Violations {
		fmt.Fprintf(out, "\nseed %d: %s\n%s", v.Seed, v.What, v.Plan)
		for _, line := range v.Story {
			fmt.Fprintf(out, "# %s\n", line)
		}
	}
}
