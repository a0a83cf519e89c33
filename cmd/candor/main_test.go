package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages/await"
)

// If the environment variable childEnv is set, the test binary behaves as candor does. The process then prints how it
// is protected against other processes.
const childEnv = "CANDOR_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(m.Run())
	}
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		var core unix.Rlimit
		if e := unix.Getrlimit(unix.RLIMIT_CORE, &core); e != nil {
			err = e
		}
		fmt.Printf("dumpable %d, core limit %d, %v\n", dumpable, core.Cur, err)
		os.Exit(0)
	}()
	main()
}

// Before a command reads keys or credentials, it must protect its process: no other process of the user may trace the
// process, and the process must leave no core file. The command "up" protects its process only after it has read its
// configuration. So the test must find no protection there. In this way the test shows that it can see a difference.
func TestCommandsAreProtectedBeforeTheyRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "site.yaml")
	if err := unix.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	const protected = "dumpable 0, core limit 0, <nil>"
	for _, line := range []string{
		"user add dave --config", "user revoke dave --config", "site init --config", "site rotate user-role --config",
		"site invite east --config", "site nats --config", "site drop rack2 --config", "site certify --replica bank rack1 --config",
		"site join letter --limit 5 --config", "bank --server nats://127.0.0.1:1 --creds x --config", "submit --budget 1",
	} {
		if says := runUntilRead(t, file, line); says != protected {
			t.Errorf("candor %s: %s", line, says)
		}
	}
	if says := runUntilRead(t, file, "up --config"); says == protected {
		t.Errorf("candor up: %s, before it has tried what namespaces it can make", says)
	}
}

// runUntilRead runs a command line until it reads the given file. It returns what the process prints about its
// protection.
func runUntilRead(t *testing.T, file, line string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append(strings.Fields(line), file)...)
	cmd.Env = append(os.Environ(), childEnv+"=yes", "CANDOR_STATE="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "candor "+line+" reads its file", func() bool {
		file, err := os.OpenFile(file, os.O_WRONLY|unix.O_NONBLOCK, 0)
		if err == nil {
			t.Cleanup(func() { _ = file.Close() })
		}
		return err == nil
	})
	if _, err := io.WriteString(in, "\n"); err != nil {
		t.Fatal(err)
	}
	says, err := io.ReadAll(out)
	if err != nil || cmd.Wait() != nil {
		t.Errorf("candor %s: %v", line, err)
	}
	return strings.TrimSpace(string(says))
}
