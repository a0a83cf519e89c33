package slurm

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// The terminal of a waiting command is closed. The shell and the kernel each send a hang-up, and the second one comes
// while the command cancels its job. The job must still be cancelled.
func TestAHangUpCancelsAWaitingJob(t *testing.T) {
	const child = "CANDOR_TEST_HANGS_UP"
	if line := os.Getenv(child); line != "" {
		os.Exit(waits(t, strings.Fields(line)))
	}
	for _, line := range []string{"salloc -n 2", "srun true", "CANDOR_JOB salloc -n 2"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), child+"="+line)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for _, want := range []string{"waiting", "cancelling", "cancelled"} {
			if !lines.Scan() || lines.Text() != want {
				t.Errorf("%s says %q, want %q", line, lines.Text(), want)
				break
			}
			_ = cmd.Process.Signal(syscall.SIGHUP)
			if want == "cancelling" {
				_ = in.Close()
			}
		}
		_ = in.Close()
		if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != cli.CodeInterrupted {
			t.Errorf("%s ends with %v", line, cmd.ProcessState)
		}
	}
}

// waits runs a command whose job never gets a slot. The site cancels the job only after the end of standard input.
func waits(t *testing.T, line []string) int {
	s := clienttest.New(t)
	s.Env["CANDOR_BUDGET"] = "2"
	if line[0] == "CANDOR_JOB" { // the command is in another job
		s.Env["CANDOR_JOB"], line = "7", line[1:]
	}
	clienttest.Reply(s, messages.Auctioneer, messages.VerbMarkets, clienttest.Markets())
	clienttest.Reply(s, messages.Auctioneer, messages.VerbNodes, clienttest.Nodes())
	clienttest.Answer(s, messages.Auctioneer, messages.VerbSubmit, func(job.SubmitRequest) (job.SubmitReply, error) {
		return job.SubmitReply{Job: 33, Market: "main", Payer: "alice"}, nil
	})
	clienttest.Reply(s, messages.Auctioneer, messages.VerbJob, job.JobDetail{})
	told := false
	clienttest.Answer(s, messages.Auctioneer, messages.VerbTasks, func(job.TasksRequest) (r job.TasksReply, err error) {
		if !told {
			told = true
			fmt.Println("waiting")
		}
		return r, nil
	})
	clienttest.Answer(s, messages.Auctioneer, messages.VerbCancel, func(job.CancelRequest) (r job.CancelReply, err error) {
		fmt.Println("cancelling")
		for in := bufio.NewReader(os.Stdin); err == nil; {
			_, err = in.ReadByte()
		}
		fmt.Println("cancelled")
		return r, nil
	})
	return start(s.App(os.Stderr, os.Stderr), line[0], line[1:])
}
