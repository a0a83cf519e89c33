// Command lab runs the trials of package trial on sites of several hosts on this
// machine. It exits with 1 if a promise was broken, and with 2 if a trial could not
// be run.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/candor-grid/candor/deploy/netlab"
	"github.com/candor-grid/candor/deploy/netlab/trial"
	"github.com/candor-grid/candor/deploy/netlab/witness"
	"github.com/candor-grid/candor/messages"
)

// Exit codes.
const (
	codeBroken = 1
	codeFailed = 2
)

// flags are what the command line says.
type flags struct {
	scenarios string
	short     bool
	json      bool
	reports   string
	loopback  bool
	keep      bool
	dir       string
	builds    string
	seed      uint64
	last      time.Duration
	acks      int
	faults    int
	only      string
	control   string
}

func (f *flags) define() {
	flag.StringVar(&f.scenarios, "scenario", every, "`name` of the scenario, or several with commas: "+strings.Join(trial.Names(), ", "))
	flag.BoolVar(&f.short, "short", false, "a version that takes seconds")
	flag.BoolVar(&f.json, "json", false, "print the reports as JSON, one on each line")
	flag.StringVar(&f.reports, "reports", "", "`file` for the reports as JSON, one on each line")
	flag.BoolVar(&f.loopback, "loopback", false, "use loopback addresses for hosts even where network namespaces are permitted")
	flag.BoolVar(&f.keep, "keep", false, "keep the directory with configurations, logs and state")
	flag.Uint64Var(&f.seed, "seed", 1, "`seed` of what the scenarios chaos and storms draw")
	flag.DurationVar(&f.last, "for", 0, "how `long` the scenarios chaos and storms go on at least, such as 2h (default a minute, or until -acks and -faults)")
	flag.IntVar(&f.acks, "acks", 0, "`number` of acknowledgements that the scenario chaos goes on for")
	flag.IntVar(&f.faults, "faults", 0, "`number` of faults that the scenario chaos goes on for")
	flag.StringVar(&f.only, "only", "", "`fault` that the scenarios chaos and storms draw, or several with commas (default all): "+strings.Join(trial.Faults(), ", "))
	flag.StringVar(&f.control, "control", "", "`fault` that the clients of the scenario chaos plant once, which must be found: "+strings.Join(witness.Plants, ", "))
	flag.StringVar(&f.builds, "builds", "", "`directory` in which the builds stay for the next run (default: they are removed)")
	flag.StringVar(&f.dir, "dir", "", "`directory` for the lab, which is kept (default: one for temporary files, which is removed)")
}

func main() {
	netlab.Probed()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	f := &flags{}
	f.define()
	flag.Parse()
	code, err := f.run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		code = codeFailed
	}
	os.Exit(code)
}

// run builds the binaries and runs the trials: in namespaces if it may.
func (f *flags) run(ctx context.Context) (int, error) {
	if netlab.Inside() {
		if err := netlab.Settle(); err != nil {
			return 0, err
		}
		return f.trials(ctx, os.Getenv(dirVariable), netlab.Namespaces)
	}
	if err := f.check(); err != nil {
		return 0, err
	}
	dir, remove, err := f.directory()
	if err != nil {
		return 0, err
	}
	defer remove()
	if err := f.build(ctx, dir); err != nil {
		return 0, err
	}
	if !f.loopback {
		if err := os.Setenv(dirVariable, dir); err != nil {
			return 0, err
		}
		code, err := netlab.Enter(ctx)
		if messages.KindOf(err) != messages.Unavailable {
			return code, err
		}
		fmt.Fprintf(os.Stderr, "hosts are loopback addresses: %v\n", err)
	}
	return f.trials(ctx, dir, func(string) (netlab.Network, error) { return netlab.Loopback() })
}

// every stands for all scenarios.
const every = "all"

// names are the scenarios that are asked for.
func (f *flags) names() []string {
	if f.scenarios == every {
		return trial.Names()
	}
	return strings.Split(f.scenarios, ",")
}

// drawn are the faults that may be drawn; none: all.
func (f *flags) drawn() []string {
	return strings.FieldsFunc(f.only, func(r rune) bool { return r == ',' })
}

// check refuses scenarios and faults that do not exist before anything is built.
func (f *flags) check() error {
	for _, name := range f.names() {
		if !slices.Contains(trial.Names(), name) {
			return messages.Errorf(messages.NotFound, "scenario %q: is unknown; the scenarios are %s", name, strings.Join(trial.Names(), ", "))
		}
	}
	if f.control != "" && !slices.Contains(witness.Plants, f.control) {
		return messages.Errorf(messages.Invalid, "control %q: must be one of %s", f.control, strings.Join(witness.Plants, ", "))
	}
	for _, name := range f.drawn() {
		if !slices.Contains(trial.Faults(), name) {
			return messages.Errorf(messages.NotFound, "fault %q: is unknown; the faults are %s", name, strings.Join(trial.Faults(), ", "))
		}
	}
	if f.last < 0 || f.acks < 0 || f.faults < 0 {
		return messages.Errorf(messages.Invalid, "for, acks and faults must be 0 or more")
	}
	return nil
}

// replacing are the scenarios in which a newer build replaces the older.
var replacing = []string{"upgrade", "chaos", "storms"}

// build builds what the scenarios need.
func (f *flags) build(ctx context.Context, dir string) error {
	for i, version := range versions {
		if i > 0 && !slices.ContainsFunc(f.names(), func(name string) bool { return slices.Contains(replacing, name) }) {
			break
		}
		if err := netlab.Build(ctx, f.binary(dir, version), version); err != nil {
			return err
		}
	}
	return nil
}

// binary is the file of a build.
func (f *flags) binary(dir, version string) string {
	return filepath.Join(cmp.Or(f.builds, dir), "candor-"+version)
}

// dirVariable tells the program in the namespaces where the lab's directory is.
const dirVariable = "CANDOR_NETLAB_DIR"

// versions are the builds that trials use; the second replaces the first.
var versions = []string{"v1.0.0-lab", "v1.1.0-lab"}

// directory makes the lab's directory; the function removes it, unless it is kept.
func (f *flags) directory() (dir string, remove func(), err error) {
	if f.dir == "" {
		dir, err = os.MkdirTemp("", "netlab-")
	} else if dir, err = filepath.Abs(f.dir); err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	return dir, func() {
		if f.keep || f.dir != "" {
			fmt.Fprintf(os.Stderr, "kept: %s\n", dir)
			return
		}
		_ = os.RemoveAll(dir)
	}, err
}

// trials runs one after another, and prints their reports and a summary. One that
// cannot be run to its end does not keep the others from running.
func (f *flags) trials(ctx context.Context, dir string, network func(dir string) (netlab.Network, error)) (int, error) {
	var reports []trial.Report
	var failed []error
	for _, name := range f.names() {
		report, err := f.trial(ctx, dir, name, network)
		if ctx.Err() != nil {
			return 0, err
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
			continue
		}
		reports = append(reports, report)
		if err := f.print(&report); err != nil {
			return 0, err
		}
	}
	code := f.summarise(reports)
	return code, errors.Join(append(failed, f.write(reports))...)
}

func (f *flags) print(r *trial.Report) error {
	if f.json {
		return json.NewEncoder(os.Stdout).Encode(r)
	}
	return r.Print(os.Stdout)
}

// trial runs one in a directory of its own.
func (f *flags) trial(ctx context.Context, dir, name string, network func(dir string) (netlab.Network, error)) (trial.Report, error) {
	own := filepath.Join(dir, name)
	if err := os.MkdirAll(own, 0o700); err != nil {
		return trial.Report{}, err
	}
	n, err := network(own)
	if err != nil {
		return trial.Report{}, err
	}
	return trial.Run(ctx, name, trial.Options{
		Dir: own, Binary: f.binary(dir, versions[0]), Newer: f.binary(dir, versions[1]),
		Network: n, Short: f.short, Log: os.Stderr, Seed: f.seed, For: f.last, Acks: f.acks, Faults: f.faults, Only: f.drawn(), Plant: f.control,
	})
}

// write writes the reports into the file that is meant for them, if any.
func (f *flags) write(reports []trial.Report) error {
	if f.reports == "" {
		return nil
	}
	var text bytes.Buffer
	for _, r := range reports {
		if err := json.NewEncoder(&text).Encode(r); err != nil {
			return err
		}
	}
	return os.WriteFile(f.reports, text.Bytes(), 0o644)
}

// summarise says which trials kept all promises, and returns the exit code.
func (f *flags) summarise(reports []trial.Report) int {
	code := 0
	for _, r := range reports {
		verdict := "every promise was kept"
		if n := len(r.Broken); n > 0 {
			code = codeBroken
			verdict = fmt.Sprintf("%d promises were broken", n)
		}
		if !f.json && len(reports) > 1 {
			fmt.Printf("%-12s %4.0f s  %s\n", r.Scenario, r.Seconds, verdict)
		}
	}
	return code
}
