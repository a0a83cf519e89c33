package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/deploy/embedded"
)

// served is what runs until its command is interrupted.
type served struct {
	Gather   func() prometheus.Gatherer
	Ready    func() error // why the actors cannot serve; nil: they can
	Metrics  embedded.MetricsDoor
	Profile  string // socket for pprof; "": none
	Announce func(ctx context.Context, w io.Writer)
	Stopping func(w io.Writer) // says that the end has begun
	Close    func() error
}

// serve prints where the actors can be reached, and waits until the command is interrupted.
func serve(cmd *cobra.Command, s served, log *zap.Logger) error {
	stop, err := observe(s.Metrics, s.Profile, s.Gather, s.Ready, log)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	s.Announce(cmd.Context(), cmd.OutOrStdout())
	tellManager("READY=1")
	<-cmd.Context().Done()
	tellManager("STOPPING=1")
	s.Stopping(cmd.OutOrStdout())
	return ended(errors.Join(stop(), s.Close()))
}

func sayStopping(w io.Writer) { fmt.Fprintln(w, "stopping") }

// tellManager tells systemd, or another service manager that listens as sd_notify(3) says, that
// a state is reached; without one it does nothing.
func tellManager(state string) {
	socket := os.Getenv("NOTIFY_SOCKET") // a path, or from "@" on a name
	if socket == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return
	}
	_, _ = conn.Write([]byte(state))
	_ = conn.Close()
}

// ended returns the error of a command that ran until it was interrupted: nil, or the error of
// closing its actors, marked so that it is not taken for the interruption.
func ended(closing error) error {
	if closing == nil {
		return nil
	}
	return disorder{closing}
}

// unstarted returns the error of a command whose actors did not start: nil if an interrupt is the
// reason.
func unstarted(ctx context.Context, err error) error {
	switch ctx.Err() {
	case nil:
		return err
	case err:
		return nil
	}
	return ended(err)
}

// disorder holds all errors of closing.
type disorder struct{ closing error }

func (d disorder) Error() string { return "could not shut down properly: " + d.closing.Error() }

// ExitCode returns the exit code for a command that was interrupted and then could not end in
// order.
func (disorder) ExitCode() int { return 1 }
