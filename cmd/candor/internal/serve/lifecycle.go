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

// served describes the actors of a command such as "candor up", which runs until it is interrupted.
type served struct {
	Gather   func() prometheus.Gatherer
	Ready    func() error // returns why the actors cannot serve; nil means they can
	Metrics  embedded.MetricsDoor
	Profile  string // socket for pprof; "" means none
	Announce func(ctx context.Context, w io.Writer)
	Stopping func(w io.Writer) // tells the user that the actors are being stopped
	Close    func() error
}

// serve prints where the actors can be reached, and waits for an interrupt.
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

// tellManager tells the service manager the state of the service, such as "ready", as sd_notify(3) says. Without a
// manager it does nothing.
func tellManager(state string) {
	socket := os.Getenv("NOTIFY_SOCKET") // a path, or a name that begins with "@"
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

// ended returns the error of an interrupted command, or nil if the actors were closed well. If closing them gave an
// error, ended puts it into the type disorder. So the program can distinguish it from the error of the interrupt
// itself.
func ended(closing error) error {
	if closing == nil {
		return nil
	}
	return disorder{closing}
}

// unstarted is called when the actors of a command did not start. It returns the error of the command. If an interrupt
// stopped the start, this is no error, and unstarted returns nil.
func unstarted(ctx context.Context, err error) error {
	switch ctx.Err() {
	case nil:
		return err
	case err:
		return nil
	}
	return ended(err)
}

// disorder is the error of a program that was interrupted and could not close all its actors. It wraps their errors.
type disorder struct{ closing error }

func (d disorder) Error() string { return "could not shut down properly: " + d.closing.Error() }

// ExitCode returns the exit code for an interrupted command that failed to close its actors.
func (disorder) ExitCode() int { return 1 }
