package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/nodeagent/runner/executor"
)

// TestAGPUThatFailsIsNotSold runs a node with two GPUs. When one GPU fails its health program, the node must take no
// new tasks. When its running task has ended, it must sell only the other GPU.
func TestAGPUThatFailsIsNotSold(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"own": {}, "executor": {Executor: executor.Self()}, "left running": {Executor: executor.Self(), LeaveRunning: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write := func(file, body string) string {
				path := filepath.Join(dir, file)
				if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
				return path
			}
			state := t.TempDir()
			// An executor that is left running may still write files when the site has ended.
			t.Cleanup(func() {
				await.Until(t, "the state is removed", func() bool { return os.RemoveAll(state) == nil })
			})
			c := small(state)
			c.Replicas = 1
			c.Markets = []market.Market{{Name: "gpu", Mechanism: market.FIFO, Classes: []messages.Name{"gpu"},
				Units: []jobmsg.ClassUnit{{Class: "gpu", Unit: jobmsg.Resources{GPUs: 1}}}}}
			c.Nodes = []Node{{Name: "g1"}}
			c.Devices = GPUs{Program: write("gpus", `echo '[{"index": 0, "uuid": "GPU-a"}, {"index": 1, "uuid": "GPU-b"}]'`),
				Health: write("health", fmt.Sprintf("[ ! -e %s/$2 ] || { echo $1 fell off the bus; exit 1; }", dir)), Every: messages.Duration(time.Second)}
			s, err := Start(within(t), c, o)
			if err != nil {
				t.Fatal(err)
			}
			defer closeSite(t, s)
			u := connect(t, s, "alice")
			// shows waits until the node shows a number of GPUs. It also waits until the node takes tasks, or gives the
			// reason `paused` if this is not "".
			shows := func(gpus int, paused string) {
				t.Helper()
				var is string
				defer func() {
					if t.Failed() {
						t.Log("the node shows ", is)
					}
				}()
				await.Until(t, fmt.Sprintf("%d GPUs are shown, and %q", gpus, paused), func() bool {
					for _, n := range request[market.NodesReply](u, messages.Auctioneer, messages.VerbNodes, messages.Empty{}).Nodes {
						why := agentmsg.Paused(n.Abilities)
						is = fmt.Sprintf("%v %v %q", n.State, *n.Resources, why)
						if n.State == "Up" && n.Resources.GPUs == gpus && (why == "" && paused == "" || paused != "" && strings.Contains(why, paused)) {
							return true
						}
					}
					return false
				})
			}
			run := func(key, script string) messages.JobID {
				return u.submit(key, jobmsg.JobSpec{Budget: messages.Credit, Stages: []jobmsg.Stage{{Name: "main", Script: script, GPUs: 1}}})
			}
			shows(2, "")
			gate, out := filepath.Join(dir, "gate"), filepath.Join(dir, "out")
			long := run("long", "echo $CANDOR_GPUS > "+out+"; while [ ! -e "+gate+" ]; do sleep 0.1; done")
			await.Until(t, "the long task runs", func() bool { _, err := os.Stat(out); return err == nil })
			write("GPU-a", "")
			shows(2, "the GPUs that work are not the GPUs that the node sells")
			write("gate", "")
			if j := u.final(long); j.State != jobmsg.Completed {
				t.Errorf("the task that ran: %v", j.State)
			}
			shows(1, "")
			if j := u.final(run("next", "echo $CANDOR_GPUS > "+out)); j.State != jobmsg.Completed {
				t.Errorf("the next: %v, %s", j.State, j.Reason)
			}
			if text, _ := os.ReadFile(out); strings.TrimSpace(string(text)) != "1" {
				t.Errorf("the next task has GPU %q, want 1", text)
			}
			write("GPU-b", "")
			shows(1, "the GPUs that work are not the GPUs that the node sells")
			for _, of := range []string{"GPU-a", "GPU-b"} {
				if err := os.Remove(filepath.Join(dir, of)); err != nil {
					t.Fatal(err)
				}
			}
			shows(2, "")
		})
	}
}
