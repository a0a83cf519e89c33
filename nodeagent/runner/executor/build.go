package executor

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// inForce has two hashes, written as digits: one of an executor's binary, and one of its configuration. A node
// announces the hashes of its executor as abilities (names that a node reports about itself). An agent computes the
// hashes of the executor that it would start now. If the running executor has other hashes, the agent replaces it.
type inForce struct{ build, tasks messages.Name }

const inForceDigits = 8

// inForceOf returns hashes of the binary and the configuration of an executor. The node's name and directory in the
// configuration are not part of the hash.
func inForceOf(binary string, c runner.Config) inForce {
	c.Node, c.Dir = "", ""
	text, _ := json.Marshal(c) // cannot fail: the configuration was read from JSON, or is written as JSON
	return inForce{"build-" + short(buildOf(binary)), "tasks-" + short(text)}
}

func short(data []byte) messages.Name {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])[:inForceDigits]
}

// buildOf returns what the Go tool chain recorded about the sources of a binary; nil if that cannot
// be read.
func buildOf(binary string) []byte {
	f, err := elf.Open(binary)
	if err != nil {
		return nil
	}
	defer f.Close()
	note := f.Section(".note.go.buildid")
	if note == nil {
		return nil
	}
	data, _ := note.Data()
	return data
}

func (i inForce) names() []messages.Name { return []messages.Name{i.build, i.tasks} }

// replaceable reports whether the executor differs in build or configuration from one that would be started now.
func (k *Client) replaceable(has []messages.Name) bool {
	return len(has) == 2 && has[0] != "" && inForce{has[0], has[1]} != inForceOf(k.config.Command[0], k.config.Runner)
}

// replace ends an executor that should be replaced, if it has no tasks. New tasks wait for the next executor. The
// caller holds k.mu.
func (k *Client) replace() {
	if k.outdated && !k.handing && !k.closing && k.conn != nil && len(k.tasks)+len(k.found)+len(k.untold) == 0 {
		k.handing = true
		k.send(&frame{Kind: end})
	}
}

// hold keeps a task while no executor is connected, so that the next executor can start it. The caller holds k.mu.
func (k *Client) hold(task runner.Task, t *remote) {
	t.held = &task
	k.tasks[task.Attempt] = t
}

// A held task waits for the next executor. loseHeld is called when there will be no other executor. It reports all held
// tasks as lost.
func (k *Client) loseHeld() {
	k.mu.Lock()
	var lost []*remote
	for a, t := range k.tasks {
		if t.held != nil {
			lost = append(lost, t)
			delete(k.tasks, a)
		}
	}
	k.mu.Unlock()
	for _, t := range lost {
		t.lose("the node was closed before it started")
	}
}
