package client

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// This function returns a command that waits for an interrupt, and then reads standard input to its end.
func closes() Group {
	return Group{Title: "Test:", Commands: []*cobra.Command{{
		Use: "close",
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Println("serving")
			<-cmd.Context().Done()
			fmt.Println("closing")
			_, err := io.Copy(io.Discard, os.Stdin)
			return err
		},
	}}}
}

// The command handles the first signal itself; the second one must end the process at once. A closed terminal sends
// hang-ups twice, so further ones must not end the process.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	const child = "CANDOR_TEST_CLOSES"
	if os.Getenv(child) != "" {
		heedAfter = 0
		os.Exit(Main([]string{"candor", "close"}, func() []Group { return []Group{closes()} }))
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), child+"=yes")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for _, want := range []string{"serving", "closing"} {
			if !lines.Scan() || lines.Text() != want {
				t.Fatalf("%v: it said %q, want %q", signal, lines.Text(), want)
			}
			if want == "serving" {
				_ = cmd.Process.Signal(signal)
			}
		}
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		if signal == syscall.SIGHUP {
			_ = cmd.Process.Signal(signal)
			_ = in.Close()
			if <-ended; !cmd.ProcessState.Exited() {
				t.Errorf("%v, twice: it ended with %v", signal, cmd.ProcessState)
			}
			continue
		}
		untilEnded(t, cmd.Process, signal, ended)
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != signal {
			t.Errorf("%v, twice: it ended with %v", signal, cmd.ProcessState)
		}
	}
}

// untilEnded sends a signal again and again until the process ends, because the process may not handle the first
// signal yet.
func untilEnded(t *testing.T, p *os.Process, signal os.Signal, ended chan struct{}) {
	again, tooLong := time.NewTicker(10*time.Millisecond), time.After(time.Minute)
	defer again.Stop()
	for {
		_ = p.Signal(signal)
		select {
		case <-ended:
			return
		case <-again.C:
		case <-tooLong:
			_ = p.Kill()
			t.Fatalf("%v again did not end it", signal)
		}
	}
}

// The command "bank" runs a bank. Its subcommands are the commands about the books. The help must list each subcommand
// once.
func TestHelpNamesCommandsOnce(t *testing.T) {
	const child = "CANDOR_TEST_HELPS"
	if os.Getenv(child) != "" {
		os.Exit(Main([]string{"candor", "bank", "--help"}, func() []Group {
			return []Group{{Title: "Test:", Commands: []*cobra.Command{{Use: "bank", Run: func(*cobra.Command, []string) {}}}}}
		}))
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), child+"=yes")
	out, err := cmd.Output()
	if n := strings.Count(string(out), "\n  verify "); err != nil || n != 1 {
		t.Errorf("verify is there %d times (%v):\n%s", n, err, out)
	}
}
