package simulate

import (
	"fmt"
	"io"
	"strings"

	"github.com/candor-grid/candor/deploy/simulated/faults"
	"github.com/candor-grid/candor/messages"
)

// faultOptions are the flags of runs under faults.
type faultOptions struct {
	plan  string
	seeds int
	from  uint64
	bug   faults.Bug // planted by tests
}

func faultsHelp() string {
	return `With --faults, three sites (east, north, west) run under faults instead. Each
seed is another history. After every step all invariants are checked. A plan is
a file of YAML, in which every field may be left out:

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
`
}

const (
	mostSeeds = 1_000_000
	// mostShrunk is how many seeds that fail get a short plan, which takes many
	// runs each; the others get all that happened.
	mostShrunk = 3
)

// run runs seeds through a plan. A seed that fails is an error, after the report;
// it is told at once.
func (f *faultOptions) run(out, stderr io.Writer, asJSON bool) error {
	text, err := document(f.plan, maxMarket)
	if err != nil {
		return messages.Errorf(messages.NotFound, "--faults: %v", err)
	}
	plan, err := faults.Decode(f.plan, text)
	if err != nil {
		return err
	}
	if f.seeds < 1 || f.seeds > mostSeeds {
		return messages.Errorf(messages.Invalid, "--seeds: must be from 1 to %d, is %d", mostSeeds, f.seeds)
	}
	if plan.Seed != 0 { // its events belong to this one
		f.from, f.seeds = plan.Seed, 1
	}
	report, err := f.report(plan, stderr)
	if err != nil {
		return err
	}
	if asJSON {
		if err := Print(out, report); err != nil {
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

func (f *faultOptions) report(plan *faults.Plan, stderr io.Writer) (*faults.Report, error) {
	r := &faults.Report{}
	progress := NewProgress(stderr)
	defer progress.End()
	progress.Step("seeds")
	for i := range f.seeds {
		progress.At(i, f.seeds)
		o := faults.Run(plan, f.from+uint64(i), f.bug)
		r.Add(&o)
		if o.Violation == nil {
			continue
		}
		progress.Clear()
		fmt.Fprintf(stderr, "seed %d: %v\n", o.Seed, o.Violation)
		short := faults.Drawn(plan, o.Seed)
		if len(r.Violations) < mostShrunk {
			short = faults.Shrink(plan, o.Seed, f.bug)
		}
		text, err := short.YAML()
		if err != nil {
			return nil, err
		}
		r.Violations = append(r.Violations, faults.Violation{Seed: o.Seed, What: o.Violation.Error(), Plan: text, Story: faults.Tell(short, o.Seed, f.bug)})
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
