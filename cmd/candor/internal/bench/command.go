package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime/pprof"
	"strings"

	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/spf13/cobra"
)

// measurement is one `candor bench NAME`.
type measurement struct {
	name, short string
	run         func(ctx context.Context, c *cobra.Command) (any, error)
	flags       func(c *cobra.Command)
}

var measurements = []measurement{
	{"latency", "time from a submission to its started process, idle site", latency, latencyFlags},
	{"dispatch", "tasks claimed and finished in a second, without processes", dispatch, dispatchFlags},
	{"processes", "real processes in a second, against bare fork, exec and wait", processes, processesFlags},
	{"wake", "claims of 1,000 idle agents, for one task and for 1,000", wake, nil},
	{"auction", "the mechanisms alone, on drawn instances and real logs", auction, auctionFlags},
	{"ledger", "transfers in a second of a bank, and of PostgreSQL beside it", ledger, ledgerFlags},
	{"memory", "memory of a site after many jobs have ended", memory, memoryFlags},
	{"scale", "a site with many agents and many waiting jobs", scale, scaleFlags},
}

// Command returns `candor bench`.
func Command() *cobra.Command {
	root := &cobra.Command{
		Use:         "bench",
		Annotations: map[string]string{runner.StartsTasks: ""},
		Short:       "measure Candor on this machine",
		Long: `Measure Candor on this machine: a whole site in one process, with three durable
replicas of each actor. The figures depend on the other work of the machine:
compare ratios, or runs at the same time.`,
		Example: "  candor bench latency\n  candor bench dispatch --json",
	}
	for _, m := range measurements {
		c := &cobra.Command{Use: m.name, Short: m.short, Example: "  candor bench " + m.name + " --json",
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
		if m.flags != nil {
			m.flags(c)
		}
		root.AddCommand(c)
	}
	return root
}

// profile begins a CPU profile if one is asked for.
func profile(c *cobra.Command) (stop func() error, err error) {
	name, err := c.Flags().GetString("cpuprofile")
	if err != nil || name == "" {
		return func() error { return nil }, err
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error { pprof.StopCPUProfile(); return f.Close() }, nil
}

// show prints a result: a struct of numbers and of such structs.
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
