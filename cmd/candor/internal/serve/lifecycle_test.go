package serve

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/deploy/embedded"
)

func interrupted(t *testing.T) context.Context {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	return ctx
}

// An interrupted site is closed. If closing it gives errors, all of them must be printed. The exit code must then
// differ from the exit code of an interrupt.
func TestClosingThatFailsIsTold(t *testing.T) {
	for _, closing := range []error{nil, errors.Join(errors.New("node1 does not end"), errors.New("the lock is gone"))} {
		cmd := &cobra.Command{}
		cmd.SetContext(interrupted(t))
		cmd.SetOut(io.Discard)
		err := serve(cmd, served{
			Stopping: sayStopping,
			Announce: func(context.Context, io.Writer) {},
			Close:    func() error { return closing },
		}, zap.NewNop())
		var coded interface{ ExitCode() int }
		switch {
		case closing == nil && err != nil:
			t.Errorf("closed in order: %v", err)
		case closing == nil:
		case !errors.As(err, &coded) || coded.ExitCode() != 1 || !strings.Contains(err.Error(), closing.Error()):
			t.Errorf("%v came out as %v", closing, err)
		}
	}
}

// If an interrupt ends the start of a site, the site must be closed properly, without an error.
func TestInterruptedStart(t *testing.T) {
	for _, further := range [][]string{nil, {"--sites", "west,east"}} {
		root := &cobra.Command{Use: "candor", SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(Commands()...)
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		root.SetArgs(append([]string{"up", "--state", t.TempDir(), "--listen", "127.0.0.1:0", "--nodes", "1", "--replicas", "1"}, further...))
		if err := root.ExecuteContext(interrupted(t)); err != nil {
			t.Errorf("%v: %v", further, err)
		}
	}
	failed := errors.New("no disk")
	if err := unstarted(t.Context(), failed); err != failed {
		t.Errorf("not interrupted: %v", err)
	}
	if err := unstarted(interrupted(t), failed); err == nil || !strings.Contains(err.Error(), failed.Error()) {
		t.Errorf("interrupted, and closing failed: %v", err)
	}
}

// A client keeps its connection open without sending a request. The site must still be able to end.
func TestMetricsEndThoughSomebodyHoldsOn(t *testing.T) {
	address, stop, err := observeMetrics(embedded.MetricsDoor{Address: "127.0.0.1:0"}, func() prometheus.Gatherer { return prometheus.NewRegistry() }, nil)
	if err != nil {
		t.Fatal(err)
	}
	silent, err := net.Dial("tcp", address.String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	metricsOf(t, address.String()) // this request shows that the first connection was accepted
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := silent.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the connection: %v, want its end", err)
	}
}
