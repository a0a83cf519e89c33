package executor

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// inForce names the build of an executor and how it runs tasks, each by some digits that are others for another
// one. An agent shows both as abilities of its node, and replaces an executor that has others than one that it
// would start now.
type inForce struct{ build, tasks messages.Name }

const inForceDigits = 8

// inForceOf is what an executor of a binary has, with a configuration, whatever its node is called.
func inForceOf(binary string, c runner.Config) inForce {
	c.Node, c.Dir = "", ""
	text, _ := json.Marshal(c) // which was JSON, or becomes it
	return inForce{"build-" + short(buildOf(binary)), "tasks-" + short(text)}
}

func short(data []byte) messages.Name {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])[:inForceDigits]
}

// buildOf is what the Go tool chain noted of what a binary was built from; nothing where that cannot be read.
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

// replaceable reports whether the executor has another build or configuration than one that would be started now.
func (k *Client) replaceable(has []messages.Name) bool {
	return len(has) == 2 && has[0] != "" && inForce{has[0], has[1]} != inForceOf(k.config.Command[0], k.config.Runner)
}

// replace ends an executor that is to be replaced, if nothing is in its hand. What is to start from now on waits for
// the next one. k.mu is held.
func (k *Client) replace() {
	if k.outdated && !k.handing && !k.closing && k.conn != nil && len(k.tasks)+len(k.found)+len(k.untold) == 0 {
		k.handing = true
		k.send(&frame{Kind: end})
	}
}

// hold keeps a task that is to start until there is another executor. k.mu is held.
func (k *Client) hold(task runner.Task, t *remote) {
	t.held = &task
	k.tasks[task.Attempt] = t
}

// loseHeld gives up what waited for another executor, when there will be none.
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
