// Package command is the command line of `lab study`.
package command

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
	"github.com/candor-grid/candor/cmd/lab/internal/study/abacus"
	"github.com/candor-grid/candor/cmd/lab/internal/study/contracts"
	"github.com/candor-grid/candor/cmd/lab/internal/study/gu"
	"github.com/candor-grid/candor/cmd/lab/internal/study/mutz"
	"github.com/candor-grid/candor/cmd/lab/internal/study/shapes"
	"github.com/candor-grid/candor/cmd/lab/internal/study/shudler"
	"github.com/candor-grid/candor/messages"
)

// studies are all studies, in the order in which they run.
var studies = []study.Study{
	shudler.Tables, shudler.Figures, shudler.Others,
	abacus.Example, abacus.Auction, abacus.Utilities, abacus.Efficiency, abacus.Time, abacus.SLO,
	contracts.Menus, contracts.Distributions, contracts.Divergence,
	mutz.Batch, mutz.Width, mutz.Reservation, mutz.Search,
	gu.Example, gu.Figures,
	shapes.Study,
}

type options struct {
	study.Options
	out  string
	list bool
}

// New returns the command.
func New() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "study [NAME…] --out DIR",
		Short: "the papers' tables and figures, reproduced, and ours beside theirs",
		Long: `Runs the studies that are named, or all, and writes for each a page (NAME.md), its
numbers (NAME.json) and its figures (SVG) into a directory. The same seed
gives the same numbers. Long studies print each part as soon as it is there, and
the time that is left.`,
		Example: `  lab study --list
  lab study shudler-tables --out figures --traces ~/logs
  lab study --quick --out /tmp/figures --traces ~/logs`,
		SilenceErrors: true, SilenceUsage: true,
		RunE: func(c *cobra.Command, names []string) error {
			if o.list {
				list(c.OutOrStdout())
				return nil
			}
			return o.run(names, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&o.out, "out", "", "the `directory` to write to")
	f.Uint64Var(&o.Seed, "seed", 1, "the `seed` of all that is drawn")
	f.BoolVar(&o.Quick, "quick", false, "small ones, in seconds, to see that they work: their numbers mean little")
	f.StringVar(&o.Traces, "traces", "", "the `directory` of the logs of the Parallel Workloads Archive")
	f.BoolVar(&o.list, "list", false, "list the studies")
	return c
}

func list(w io.Writer) {
	for _, s := range studies {
		fmt.Fprintf(w, "%-24s %s\n", s.Name, s.About)
	}
}

func (o *options) run(names []string, w, progress io.Writer) error {
	chosen, err := choose(names)
	if err != nil {
		return err
	}
	if o.out == "" {
		return messages.Errorf(messages.Invalid, "--out: missing: name the directory to write to")
	}
	for _, s := range chosen {
		began := time.Now()
		o.Told = func(done, of int, what string) {
			took := time.Since(began)
			fmt.Fprintf(progress, "%s: %d of %d, %.0f s left: %s\n", s.Name, done, of, took.Seconds()*float64(of-done)/float64(done), what)
		}
		report, err := s.Run(o.Options)
		if err == nil {
			err = report.Write(o.out, s.Name)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		fmt.Fprintf(w, "%-24s %.1f s\n", s.Name, time.Since(began).Seconds())
	}
	return nil
}

// choose returns the studies with the given names. Without names, it returns all studies.
func choose(names []string) ([]study.Study, error) {
	if len(names) == 0 {
		return studies, nil
	}
	var out []study.Study
	for _, name := range names {
		k := slices.IndexFunc(studies, func(s study.Study) bool { return s.Name == name })
		if k < 0 {
			return nil, messages.Errorf(messages.Invalid, "there is no study %.64q: --list lists them", name)
		}
		out = append(out, studies[k])
	}
	return out, nil
}
