package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"runtime/pprof"
	"strings"

	"github.com/spf13/cobra"
)

type measurement struct {
	name, short string
	run         func(ctx context.Context, c *cobra.Command) (any, error)
	flags       func(c *cobra.Command)
}

var measurements = []measurement{
	{"latency", "time from a submission to the started process, on an idle site", latency, latencyFlags},
	{"dispatch", "tasks claimed and finished in a second, without processes", dispatch, dispatchFlags},
	{"processes", "processes in a second, compared with a loop of fork, exec and wait", processes, processesFlags},
	{"wake", "claims by 1,000 idle agents, of one task and of 1,000 tasks", wake, nil},
	{"auction", "the mechanisms alone, on drawn instances and real logs", alone(auction), auctionFlags},
	{"ledger", "transfers in a second by a bank, compared with PostgreSQL", ledger, ledgerFlags},
	{"memory", "memory of a site after many jobs have ended", memory, memoryFlags},
	{"waiting", "memory, snapshots and a new leader with a million jobs that wait", alone(waiting), waitingFlags},
	{"scale", "a site with many agents and many waiting jobs", scale, scaleFlags},
	{"curves", "how rates and memory grow with a site, as JSON and SVG", growthCurves, curvesFlags},
}

// CodeInterrupted is the exit code of a program that ended because of an interrupt.
const CodeInterrupted = 130

// alone makes a measurement from a function that only computes. An interrupt ends the process at once, because such a
// function leaves nothing to clean up.
func alone(run func(ctx context.Context, c *cobra.Command) (any, error)) func(context.Context, *cobra.Command) (any, error) {
	return func(ctx context.Context, c *cobra.Command) (any, error) {
		defer context.AfterFunc(ctx, func() { os.Exit(CodeInterrupted) })()
		return run(ctx, c)
	}
}

// Command returns `lab bench`.
func Command() *cobra.Command {
	root := &cobra.Command{
		Use:   "bench",
		Short: "measure Candor on this machine",
		Long: `Measure Candor on this machine: a whole site in one process, with three durable
replicas of each actor. The figures depend on the other work of the machine:
compare ratios, or runs at the same time.`,
		Example: "  lab bench latency\n  lab bench dispatch --json",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	for _, m := range measurements {
		c := &cobra.Command{Use: m.name, Short: m.short, Example: "  lab bench " + m.name + " --json",
			RunE: func(c *cobra.Command, _ []string) error {
				stop, err := profile(c)
				if err != nil {
					return err
				}
				result, err := m.run(c.Context(), c)
				if err := errors.Join(err, stop()); err != nil {
					return err
				}
				return show(c, result)
			}}
		c.Flags().Bool("json", false, "print the result as JSON")
		c.Flags().String("cpuprofile", "", "write a CPU profile to this file")
		c.Flags().String("memprofile", "", "write a profile of memory and allocations to this file")
		c.Flags().String("mutexprofile", "", "write a profile of waits for mutexes to this file")
		if m.flags != nil {
			m.flags(c)
		}
		root.AddCommand(c)
	}
	root.AddCommand(loadCommand())
	return root
}

func profile(c *cobra.Command) (stop func() error, err error) {
	files := map[string]*os.File{}
	for _, kind := range []string{"cpu", "mem", "mutex"} {
		name, err := c.Flags().GetString(kind + "profile")
		if err != nil {
			return nil, err
		}
		if name == "" {
			continue
		}
		if files[kind], err = os.Create(name); err != nil {
			return nil, err
		}
	}
	if f := files["cpu"]; f != nil {
		if err := pprof.StartCPUProfile(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	if files["mutex"] != nil {
		runtime.SetMutexProfileFraction(10)
	}
	return func() (err error) {
		pprof.StopCPUProfile()
		if f := files["mem"]; f != nil {
			err = pprof.Lookup("allocs").WriteTo(f, 0)
		}
		if f := files["mutex"]; f != nil {
			err = errors.Join(err, pprof.Lookup("mutex").WriteTo(f, 0))
		}
		for _, f := range files {
			err = errors.Join(err, f.Close())
		}
		return err
	}, nil
}

// show prints a result. The result is a struct whose fields are numbers, or structs of numbers.
func show(c *cobra.Command, result any) error {
	if asJSON, err := c.Flags().GetBool("json"); err == nil && asJSON {
		out, err := json.Marshal(result)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(c.OutOrStdout(), string(out))
		return err
	}
	return list(c.OutOrStdout(), "", reflect.ValueOf(result))
}

func list(w io.Writer, prefix string, v reflect.Value) error {
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		f := v.Field(i)
		var err error
		if f.Kind() == reflect.Pointer && !f.IsNil() {
			f = f.Elem()
		}
		if f.Kind() == reflect.Struct {
			err = list(w, prefix+name+".", f)
		} else {
			_, err = fmt.Fprintf(w, "%-34s %v\n", prefix+name, f.Interface())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
