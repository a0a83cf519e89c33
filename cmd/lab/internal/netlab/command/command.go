// Package command is the command line of `lab net`, which runs the trials of package trial.
package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/candor-grid/candor/cmd/lab/internal/netlab"
	"github.com/candor-grid/candor/cmd/lab/internal/netlab/trial"
	"github.com/candor-grid/candor/cmd/lab/internal/netlab/witness"
	"github.com/candor-grid/candor/messages"
)

const (
	codeBroken = 1
	codeFailed = 2
)

type options struct {
	scenarios string
	short     bool
	json      bool
	reports   string
	loopback  bool
	keep      bool
	dir       string
	builds    string
	from      string
	seed      uint64
	last      time.Duration
	acks      int
	faults    int
	only      string
	control   string
}

func (o *options) define(f *pflag.FlagSet) {
	f.StringVar(&o.scenarios, "scenario", every, "`name` of the scenario, or several with commas: "+strings.Join(trial.Names(), ", "))
	f.BoolVar(&o.short, "short", false, "a version that takes seconds")
	f.BoolVar(&o.json, "json", false, "print the reports as JSON, one on each line")
	f.StringVar(&o.reports, "reports", "", "`file` for the reports as JSON, one on each line")
	f.BoolVar(&o.loopback, "loopback", false, "use loopback addresses for hosts even where network namespaces are permitted")
	f.BoolVar(&o.keep, "keep", false, "keep the directory with configurations, logs and state")
	f.Uint64Var(&o.seed, "seed", 1, "`seed` of what the scenarios chaos and storms draw")
	f.DurationVar(&o.last, "for", 0, "how `long` the scenarios chaos and storms go on at least, such as 2h (default a minute, or until --acks and --faults)")
	f.IntVar(&o.acks, "acks", 0, "`number` of acknowledgements that the scenario chaos goes on for")
	f.IntVar(&o.faults, "faults", 0, "`number` of faults that the scenario chaos goes on for")
	f.StringVar(&o.only, "only", "", "`fault` that the scenarios chaos and storms draw, or several with commas (default all): "+strings.Join(trial.Faults(), ", "))
	f.StringVar(&o.control, "control", "", "`fault` that the clients of the scenario chaos plant once, which must be found: "+strings.Join(witness.Plants, ", "))
	f.StringVar(&o.from, "from", "", "`commit` of the history from which the earlier build is made (default: both are made from this source)")
	f.StringVar(&o.builds, "builds", "", "`directory` in which the builds stay for the next run (default: they are removed)")
	f.StringVar(&o.dir, "dir", "", "`directory` for the lab, which is kept (default: one for temporary files, which is removed)")
}

// Command returns `lab net`.
func Command() *cobra.Command {
	o := &options{}
	c := &cobra.Command{
		Use:   "net",
		Short: "sites of several hosts on this machine: kill, cut off, upgrade, federate",
		Long: `Runs scenarios on sites of several hosts on this machine. Exits with 1 if a
promise was broken, and with 2 if a scenario could not be run.`,
		Example: "  lab net --scenario failover --short\n  lab net --scenario chaos --for 10m --seed 3",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			code, err := o.run(c.Context())
			if err != nil {
				return &verdict{codeFailed, "net: " + err.Error()}
			}
			if code != 0 {
				return &verdict{code: code}
			}
			return nil
		},
	}
	o.define(c.Flags())
	return c
}

// verdict is an error that says with which code the program exits.
type verdict struct {
	code int
	why  string // "" means it was printed already
}

func (v *verdict) Error() string { return v.why }

func (v *verdict) ExitCode() int { return v.code }

// run builds the binaries and runs the trials, in namespaces if that is allowed.
func (o *options) run(ctx context.Context) (int, error) {
	if netlab.Inside() {
		if err := netlab.Settle(); err != nil {
			return 0, err
		}
		return o.trials(ctx, os.Getenv(dirVariable), netlab.Namespaces)
	}
	if err := o.check(); err != nil {
		return 0, err
	}
	dir, remove, err := o.directory()
	if err != nil {
		return 0, err
	}
	defer remove()
	if err := o.build(ctx, dir); err != nil {
		return 0, err
	}
	if !o.loopback {
		if err := os.Setenv(dirVariable, dir); err != nil {
			return 0, err
		}
		code, err := netlab.Enter(ctx)
		if messages.KindOf(err) != messages.Unavailable {
			return code, err
		}
		fmt.Fprintf(os.Stderr, "hosts are loopback addresses: %v\n", err)
	}
	return o.trials(ctx, dir, func(string) (netlab.Network, error) { return netlab.Loopback() })
}

// every is the name that stands for all scenarios.
const every = "all"

func (o *options) names() []string {
	if o.scenarios == every {
		return trial.Names()
	}
	return strings.Split(o.scenarios, ",")
}

// drawn returns the faults that the user allows. An empty list allows all.
func (o *options) drawn() []string {
	return strings.FieldsFunc(o.only, func(r rune) bool { return r == ',' })
}

// check refuses unknown scenarios and faults before anything is built.
func (o *options) check() error {
	for _, name := range o.names() {
		if !slices.Contains(trial.Names(), name) {
			return messages.Errorf(messages.NotFound, "scenario %q: is unknown; the scenarios are %s", name, strings.Join(trial.Names(), ", "))
		}
	}
	if o.control != "" && !slices.Contains(witness.Plants, o.control) {
		return messages.Errorf(messages.Invalid, "control %q: must be one of %s", o.control, strings.Join(witness.Plants, ", "))
	}
	for _, name := range o.drawn() {
		if !slices.Contains(trial.Faults(), name) {
			return messages.Errorf(messages.NotFound, "fault %q: is unknown; the faults are %s", name, strings.Join(trial.Faults(), ", "))
		}
	}
	if o.last < 0 || o.acks < 0 || o.faults < 0 {
		return messages.Errorf(messages.Invalid, "for, acks and faults must be 0 or more")
	}
	return nil
}

// replacing lists the scenarios in which a newer build replaces an older one.
var replacing = []string{"upgrade", "chaos", "storms"}

func (o *options) build(ctx context.Context, dir string) error {
	if o.from != "" {
		if err := netlab.BuildCommit(ctx, o.binary(dir, versions[0]), versions[0], o.from); err != nil {
			return err
		}
	}
	for i, version := range versions {
		if i == 0 && o.from != "" {
			continue
		}
		if i > 0 && !slices.ContainsFunc(o.names(), func(name string) bool { return slices.Contains(replacing, name) }) {
			break
		}
		if err := netlab.Build(ctx, o.binary(dir, version), version); err != nil {
			return err
		}
	}
	return nil
}

func (o *options) binary(dir, version string) string {
	return filepath.Join(cmp.Or(o.builds, dir), "candor-"+version)
}

// dirVariable has the path of the lab's directory. The program that runs again in the namespaces reads it.
const dirVariable = "CANDOR_NETLAB_DIR"

// versions are the builds that trials use. The second one replaces the first.
var versions = []string{"v1.0.0-lab", "v1.1.0-lab"}

// directory makes the directory for the hosts' files. The result `remove` is a function that removes the directory,
// unless the user named it or asked to keep it.
func (o *options) directory() (dir string, remove func(), err error) {
	if o.dir == "" {
		dir, err = os.MkdirTemp("", "netlab-")
	} else if dir, err = filepath.Abs(o.dir); err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	return dir, func() {
		if o.keep || o.dir != "" {
			fmt.Fprintf(os.Stderr, "kept: %s\n", dir)
			return
		}
		_ = os.RemoveAll(dir)
	}, err
}

// trials runs the trials one after another, and prints their reports and a summary. If a trial cannot run to its end,
// the trials after it still run.
func (o *options) trials(ctx context.Context, dir string, network func(dir string) (netlab.Network, error)) (int, error) {
	var reports []trial.Report
	var failed []error
	for _, name := range o.names() {
		report, err := o.trial(ctx, dir, name, network)
		if ctx.Err() != nil {
			return 0, err
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
			continue
		}
		reports = append(reports, report)
		if err := o.print(&report); err != nil {
			return 0, err
		}
	}
	code := o.summarise(reports)
	return code, errors.Join(append(failed, o.write(reports))...)
}

func (o *options) print(r *trial.Report) error {
	if o.json {
		return json.NewEncoder(os.Stdout).Encode(r)
	}
	return r.Print(os.Stdout)
}

func (o *options) trial(ctx context.Context, dir, name string, network func(dir string) (netlab.Network, error)) (trial.Report, error) {
	own := filepath.Join(dir, name)
	if err := os.MkdirAll(own, 0o700); err != nil {
		return trial.Report{}, err
	}
	n, err := network(own)
	if err != nil {
		return trial.Report{}, err
	}
	return trial.Run(ctx, name, trial.Options{
		Dir: own, Binary: o.binary(dir, versions[0]), Newer: o.binary(dir, versions[1]),
		Network: n, Short: o.short, Log: os.Stderr, Seed: o.seed, For: o.last, Acks: o.acks, Faults: o.faults, Only: o.drawn(), Plant: o.control,
	})
}

func (o *options) write(reports []trial.Report) error {
	if o.reports == "" {
		return nil
	}
	var text bytes.Buffer
	for _, r := range reports {
		if err := json.NewEncoder(&text).Encode(r); err != nil {
			return err
		}
	}
	return os.WriteFile(o.reports, text.Bytes(), 0o644)
}

// summarise prints for each trial whether it kept all promises. It returns the exit code of the command.
func (o *options) summarise(reports []trial.Report) int {
	code := 0
	for _, r := range reports {
		verdict := "every promise was kept"
		if n := len(r.Broken); n > 0 {
			code = codeBroken
			verdict = fmt.Sprintf("%d promises were broken", n)
		}
		if !o.json && len(reports) > 1 {
			fmt.Printf("%-12s %4.0f s  %s\n", r.Scenario, r.Seconds, verdict)
		}
	}
	return code
}
