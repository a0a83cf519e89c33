package runner_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner/store"
)

// input puts a file where the agent would put an input.
func (b *bench) input(name, content string) job.File {
	b.t.Helper()
	f := job.File{Name: name, Size: int64(len(content)), Digest: fmt.Sprintf("%x", sha256.Sum256([]byte(content)))}
	if err := os.MkdirAll(store.InputsDir(b.dir), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(store.InputFile(b.dir, f.Digest), []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return f
}

// TestInputsArePlaced checks that each task has its own copies of the inputs. When a task has ended, its copies must be
// in the directory that KeptDir returns.
func TestInputsArePlaced(t *testing.T) {
	b := newBench(t, nil)
	p := sh("cat in/deep/data && ./tool && echo more >> in/deep/data && ! test -x in/deep/data")
	tool := b.input("tool", "#!/bin/sh\necho run\n")
	tool.Executable = true
	p.Inputs = []job.File{b.input("in/deep/data", "data\n"), tool, b.input("in/empty", "")}
	for range 2 {
		s := b.start(p)
		if f := s.wait(); f.Outcome != agent.Exited || f.ExitCode != 0 {
			t.Fatalf("finished as %+v", f)
		}
		if got := b.read(s, false); got != "data\nrun\n" {
			t.Errorf("the task wrote %q", got)
		}
		kept, err := os.ReadFile(filepath.Join(store.KeptDir(b.dir, "ann", s.attempt), "in/deep/data"))
		if err != nil || string(kept) != "data\nmore\n" {
			t.Errorf("the task left %q, %v", kept, err)
		}
	}
}

// TestInputsAreChecked checks that no process is started if an input is missing or damaged.
func TestInputsAreChecked(t *testing.T) {
	b := newBench(t, nil)
	damaged := b.input("damaged", "whole")
	if err := os.WriteFile(store.InputFile(b.dir, damaged.Digest), []byte("whale"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := b.input("good", "good")
	twice := b.input("good/below", "below")
	escape := b.input("../out", "out")
	for why, inputs := range map[string][]job.File{
		"input missing: is not on this node":            {good, {Name: "missing", Digest: strings.Repeat("0", 64)}},
		"input damaged: is damaged":                     {damaged},
		"input good/below: ":                            {good, twice},
		"input ../out: ":                                {escape},
		"input files of a job need a working directory": nil,
	} {
		p := sh("echo started")
		p.Inputs = inputs
		if inputs == nil {
			p.Inputs, p.Dir = []job.File{good}, t.TempDir()
		}
		s := b.start(p)
		if f := s.wait(); f.Outcome != agent.Unstartable || !strings.HasPrefix(f.Detail, why) {
			t.Errorf("finished as %+v, want Unstartable: %s…", f, why)
		}
	}
	if _, err := os.Stat(store.InputFile(b.dir, damaged.Digest)); !os.IsNotExist(err) {
		t.Errorf("the damaged copy is still there: %v", err)
	}
	if f := b.start(sh("true")).wait(); f.Outcome != agent.Exited {
		t.Errorf("a task after those finished as %+v", f)
	}
}
