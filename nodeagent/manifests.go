package nodeagent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// manifest lists the input and output files of a stage. The agent needs it when a task ends.
type manifest struct {
	Account messages.Name `json:"account"`
	Inputs  []job.File    `json:"inputs,omitempty"`
	Outputs []string      `json:"outputs,omitempty"`
}

func manifestOf(p *agent.Program) *manifest {
	return &manifest{Account: p.Account, Inputs: p.Inputs, Outputs: p.Outputs}
}

// manifests keeps one manifest in a directory for each stage with tasks on this node. After a restart, an agent reads
// there which outputs of the running tasks it must store.
type manifests struct {
	state string // directory of the agent; "" means there are no files
	log   *zap.Logger
	life  context.Context // ends when the agent ends

	mu    sync.Mutex
	users map[string]int // number of present tasks, by the path of their stage's manifest
}

// sweep removes the manifests of stages without running tasks, and counts the running tasks of each other stage.
func (m *manifests) sweep(running []runner.Adopted) {
	if m.state == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range running {
		m.users[m.path(t.Attempt.Task.Job, t.Attempt.Task.Stage)]++
	}
	dir := filepath.Dir(m.path(0, 0))
	old, _ := os.ReadDir(dir) // fails only before the first manifest is written
	for _, e := range old {
		if path := filepath.Join(dir, e.Name()); m.users[path] == 0 {
			os.Remove(path)
		}
	}
}

// add counts a task of a stage. If it is the first task of the stage, add also writes the manifest. All tasks of the
// stage share this manifest.
func (m *manifests) add(p *agent.Program) error {
	path := m.path(p.Job, p.Stage)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users[path] == 0 {
		if err := writeManifest(path, manifestOf(p)); err != nil {
			return messages.Errorf(messages.Unavailable, "cannot write the list of the job's files: %v", err)
		}
	}
	m.users[path]++
	return nil
}

// writeManifest writes a temporary file and renames it: with half a manifest, the agent would not store all outputs.
func writeManifest(path string, l *manifest) error {
	text, err := json.Marshal(l)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path+".part", text, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".part", path)
	}
	return err
}

// remove is called when a task of a stage no longer needs the stage's manifest. When the last of these tasks has called
// remove, the manifest is removed. If the agent is about to stop, the manifest stays: the next agent needs it to store
// the remaining outputs.
func (m *manifests) remove(job messages.JobID, stage uint32) {
	path := m.path(job, stage)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users[path] == 0 || m.life.Err() != nil {
		return
	}
	if m.users[path]--; m.users[path] == 0 {
		delete(m.users, path)
		os.Remove(path) // if this fails, the next agent finds the file
	}
}

// find returns the manifest that an earlier agent wrote for a task's stage, or nil if the stage has no files.
func (m *manifests) find(t messages.TaskRef) *manifest {
	text, err := os.ReadFile(m.path(t.Job, t.Stage))
	if err != nil {
		return nil
	}
	l := new(manifest)
	if err := json.Unmarshal(text, l); err != nil {
		m.log.Error("the outputs of the tasks of a stage are not known", zap.Any("task", t), zap.Error(err))
		return nil
	}
	return l
}

func (m *manifests) path(job messages.JobID, stage uint32) string {
	return filepath.Join(m.state, "luggage", fmt.Sprintf("%d.%d.json", job, stage))
}
