package store

import (
	"os"
	"path/filepath"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner/lane"
)

// InputFile returns the path of an input in a state directory. The agent puts the input there before it starts a task
// that needs it.
func InputFile(dir, digest string) string { return filepath.Join(InputsDir(dir), digest) }

// InputsDir holds the inputs of a state directory.
func InputsDir(dir string) string { return filepath.Join(dir, "inputs") }

// KeptDir returns the path of an attempt's own working directory after the attempt has ended. If the directory was
// empty at the end of the attempt, it has been removed.
func KeptDir(dir string, account messages.Name, a messages.Attempt) string {
	return baseOf(jobsDir(dir), account, a) + lane.DirEnding
}

func jobsDir(dir string) string { return filepath.Join(dir, "jobs") }

// OpenRoot opens a directory inside a job's directory. It refuses a link that leads out of the
// job's directory.
func OpenRoot(dir string) (*os.Root, error) {
	job, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return nil, err
	}
	defer job.Close()
	return job.OpenRoot(filepath.Base(dir))
}
