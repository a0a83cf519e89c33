// Command lab is for developers of Candor: it measures the program, tests it under faults, and reproduces the papers
// behind the mechanisms.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/lab/internal/bench"
	faults "github.com/candor-grid/candor/cmd/lab/internal/faults/command"
	"github.com/candor-grid/candor/cmd/lab/internal/netlab"
	net "github.com/candor-grid/candor/cmd/lab/internal/netlab/command"
	study "github.com/candor-grid/candor/cmd/lab/internal/study/command"
	"github.com/candor-grid/candor/nodeagent/runner/executor"
)

func main() {
	netlab.Probed()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	err := root().ExecuteContext(ctx)
	if err == nil {
		return
	}
	if ctx.Err() != nil {
		os.Exit(bench.CodeInterrupted)
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(os.Stderr, "lab:", text)
	}
	if coded, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err); ok {
		os.Exit(coded.ExitCode())
	}
	os.Exit(1)
}

func root() *cobra.Command {
	c := &cobra.Command{
		Use: "lab", Short: "measure Candor, put it under faults, and reproduce the papers that it comes from",
		Args: cobra.NoArgs, SilenceErrors: true, SilenceUsage: true,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(bench.Command(), faults.Command(), net.Command(), study.New(), executorCommand())
	return c
}

// executorCommand runs the tasks of a node whose site is measured.
func executorCommand() *cobra.Command {
	return &cobra.Command{
		Use: executor.Argument, Hidden: true, DisableFlagParsing: true, Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return executor.Main(args) },
	}
}
