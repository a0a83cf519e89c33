package federation

import "github.com/candor-grid/candor/messages"

// Portable refuses a job that needs what only its home site has: files at the
// depot, and other jobs to wait for.
func Portable(spec *messages.JobSpec) error {
	switch {
	case len(spec.AfterJobs) > 0:
		return messages.Errorf(messages.Invalid, "after_jobs: a job at another site cannot wait for jobs of this one; submit it when they have ended, or here")
	case len(spec.AfterOK) > 0:
		return messages.Errorf(messages.Invalid, "after_ok: a job at another site cannot wait for jobs of this one; submit it when they have ended, or here")
	}
	for i := range spec.Stages {
		switch s := &spec.Stages[i]; {
		case len(s.Inputs) > 0:
			return messages.Errorf(messages.Invalid, "stages[%d].inputs: files do not travel to other sites; put small input into the script, or submit it here", i)
		case len(s.Outputs) > 0:
			return messages.Errorf(messages.Invalid, "stages[%d].outputs: files are not kept at other sites; write what is to come back to standard output, or submit it here", i)
		}
	}
	return nil
}
