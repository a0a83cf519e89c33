package runner_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// TestPortsAreTheTasksOwn checks that a connection to a port reaches the listener in the task. It must not reach another process
// that listens on the same port.
func TestPortsAreTheTasksOwn(t *testing.T) {
	for name, make := range map[string]func(*testing.T) *bench{
		"users and rooms": func(t *testing.T) *bench { return strangers(t, nil) },
		"private":         func(t *testing.T) *bench { return strangers(t, func(c *runner.Config) { c.Private = true }) },
		"one user":        func(t *testing.T) *bench { return newBench(t, nil) },
		"without cells":   func(t *testing.T) *bench { return newBench(t, func(c *runner.Config) { c.NoCells = true }) },
	} {
		t.Run(name, func(t *testing.T) {
			b := make(t)
			dir, err := os.MkdirTemp("/var/tmp", "candor")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			if err := errors.Join(os.Chmod(dir, 0o755), os.Rename(filepath.Join(openDir(t), "attack"), filepath.Join(dir, "attack"))); err != nil {
				t.Fatal(err)
			}
			foreign, err := net.Listen("tcp4", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer foreign.Close()
			for _, address := range []string{"127.0.0.1:0", ":0", "[::1]:0"} {
				if l, err := net.Listen("tcp", address); err != nil { // this machine has no IPv6
					continue
				} else {
					_ = l.Close()
				}
				p := of("ann", 7, agent.Program{Dir: dir, Script: dir + "/attack delay serve " + address + " & wait"})
				server, port := b.start(p), 0
				if _, err := fmt.Sscanf(b.read(server, false), "begun at %d", &port); err != nil {
					t.Fatalf("%v: %q", err, b.read(server, true))
				}
				streams := 0
				dial := func(at int) (f *follower, err error) {
					await.Until(t, "the task has started", func() bool { // the task may write output before the runner has its process number
						streams++
						f = b.follow(server.attempt, fmt.Sprint(streams), "one")
						f.request.Begin = &agent.StreamBegin{Port: at}
						_, err = b.Stream(context.Background(), f.request)
						return err == nil || !strings.Contains(err.Error(), "is starting")
					})
					return f, err
				}
				if _, err := dial(foreign.Addr().(*net.TCPAddr).Port); err == nil || name != "private" && !strings.Contains(err.Error(), "outside the task") {
					t.Errorf("a port of somebody else: %v", err)
				}
				f, err := dial(port)
				if err != nil {
					t.Errorf("%s: %v", address, err)
				} else if f.read("task"); f.out.String() != "of the task" {
					t.Errorf("%s: %q", address, f.out.String())
				}
				if _, err := dial(port); err == nil || strings.Contains(err.Error(), "outside the task") {
					t.Errorf("a port where nobody listens any more: %v", err)
				}
				server.Stop(0)
			}
		})
	}
}
