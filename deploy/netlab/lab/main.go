// Command lab runs the trials of package trial on sites of several hosts on this
// machine. It exits with 1 if a promise was broken, and with 2 if a trial could not
// be run.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/candor-grid/candor/deploy/netlab"
	"github.com/candor-grid/candor/deploy/netlab/trial"
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
	loopback  bool
	keep      bool
	dir       string
}

func main() {
	netlab.Probed()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	f := &flags{}
	flag.StringVar(&f.scenarios, "scenario", "failover", "`name` of the scenario, or several with commas: "+strings.Join(trial.Names(), ", "))
	flag.BoolVar(&f.short, "short", false, "a version that fits into a minute")
	flag.BoolVar(&f.json, "json", false, "print the reports as JSON, one on each line")
	flag.BoolVar(&f.loopback, "loopback", false, "use loopback addresses for hosts even where network namespaces are permitted")
	flag.BoolVar(&f.keep, "keep", false, "keep the directory with configurations, logs and state")
	flag.StringVar(&f.dir, "dir", "", "empty `directory` for the lab (default: one below that for temporary files, which is removed)")
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

// check refuses scenarios that do not exist before anything is built.
func (f *flags) check() error {
	for _, name := range strings.Split(f.scenarios, ",") {
		if !slices.Contains(trial.Names(), name) {
			return messages.Errorf(messages.NotFound, "scenario %q: there is none; there are %s", name, strings.Join(trial.Names(), ", "))
		}
	}
	return nil
}

// build builds what the scenarios need.
func (f *flags) build(ctx context.Context, dir string) error {
	for i, version := range versions {
		if i > 0 && !strings.Contains(f.scenarios, "upgrade") {
			break
		}
		if _, err := netlab.Build(ctx, dir, version); err != nil {
			return err
		}
	}
	return nil
}

// dirVariable tells the program in the namespaces where the lab's directory is.
const dirVariable = "CANDOR_NETLAB_DIR"

// versions are the builds that trials use; the second replaces the first.
var versions = []string{"v1.0.0-lab", "v1.1.0-lab"}

func (f *flags) directory() (dir string, remove func(), err error) {
	dir = f.dir
	if dir == "" {
		dir, err = os.MkdirTemp("", "netlab-")
	} else {
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

// trials runs one after another and prints their reports.
func (f *flags) trials(ctx context.Context, dir string, network func(dir string) (netlab.Network, error)) (int, error) {
	code := 0
	for _, name := range strings.Split(f.scenarios, ",") {
		own := filepath.Join(dir, name)
		if err := os.MkdirAll(own, 0o700); err != nil {
			return 0, err
		}
		n, err := network(own)
		if err != nil {
			return 0, err
		}
		report, err := trial.Run(ctx, name, trial.Options{
			Dir: own, Binary: filepath.Join(dir, "candor-"+versions[0]), Newer: filepath.Join(dir, "candor-"+versions[1]),
			Network: n, Short: f.short, Log: os.Stderr,
		})
		if err == nil {
			err = f.print(os.Stdout, &report)
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		if len(report.Broken) > 0 {
			code = codeBroken
		}
	}
	return code, nil
}

func (f *flags) print(w io.Writer, r *trial.Report) error {
	if f.json {
		return json.NewEncoder(w).Encode(r)
	}
	return r.Print(w)
}
