package runner

import (
	"path/filepath"

	"github.com/candor-grid/candor/messages"
)

// InputFile is where the agent of a state directory puts an input before it starts
// a task that wants it; the runner copies it from there.
func InputFile(dir, digest string) string { return filepath.Join(InputsDir(dir), digest) }

// InputsDir holds the inputs of a state directory.
func InputsDir(dir string) string { return filepath.Join(dir, "inputs") }

// KeptDir is what is left, once an attempt has ended, of a working directory of
// its own; it is not there if that was empty.
func KeptDir(dir string, account messages.Name, a messages.Attempt) string {
	return baseOf(jobsDir(dir), account, a) + dirEnding
}

const dirEnding = ".dir"

// jobsDir holds the directories of jobs of a state directory.
func jobsDir(dir string) string { return filepath.Join(dir, "jobs") }
