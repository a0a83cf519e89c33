package simulate

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

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

const (
	mostSeeds = 1_000_000
	// mostShrunk is how many seeds that fail get a short plan, which takes many
	// runs each; the others get all that happened.
	mostShrunk = 3
)

// run runs seeds through a plan. A seed that fails is an error, after the report;
// it is told at once.
func (f *faultOptions) run(out, stderr io.Writer, asJSON bool) error {
	text, err := os.ReadFile(f.plan)
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
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		if err := e.Encode(report); err != nil {
			return err
		}
	} else {
		writeFaults(out, report)
	}
	if n := len(report.Violations); n > 0 {
		return messages.Errorf(messages.Internal, "%d of %d seeds violate what must always hold; the plans printed replay them", n, report.Seeds)
	}
	return nil
}

func (f *faultOptions) report(plan *faults.Plan, stderr io.Writer) (*faults.Report, error) {
	r := &faults.Report{}
	for i := range f.seeds {
		o := faults.Run(plan, f.from+uint64(i), f.bug)
		r.Add(&o)
		if o.Violation == nil {
			continue
		}
		fmt.Fprintf(stderr, "seed %d: %v\n", o.Seed, o.Violation)
		short := faults.Drawn(plan, o.Seed)
		if len(r.Violations) < mostShrunk {
			short = faults.Shrink(plan, o.Seed, f.bug)
		}
		text, err := short.YAML()
		if err != nil {
			return nil, err
		}
		r.Violations = append(r.Violations, faults.Violation{Seed: o.Seed, What: o.Violation.Error(), Plan: text})
	}
	return r, nil
}

func writeFaults(out io.Writer, r *faults.Report) {
	fmt.Fprintf(out, "seeds            %d\nsteps            %d\nentries checked  %d\njobs             %d, %d of other sites\ninstructions     %d\nsimulated hours  %.1f\nviolations       %d\n",
		r.Seeds, r.Steps, r.Applied, r.Jobs, r.Visits, r.Instructions, r.SimulatedHours, len(r.Violations))
	for _, k := range faults.Kinds {
		fmt.Fprintf(out, "  %-10s %d\n", k, r.Faults[k])
	}
	for _, v := range r.Violations {
		fmt.Fprintf(out, "\nseed %d: %s\n%s", v.Seed, v.What, v.Plan)
	}
}
