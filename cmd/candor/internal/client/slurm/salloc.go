package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/cmd/candor/internal/client/submit"
)

// salloc runs a command or a shell in a job. The command runs on the job's node, whereas Slurm runs it on the machine
// of salloc. The command has the input and output of this process.
func salloc(ctx context.Context, c *call, args []string) error {
	o := jobfile.NewOptions(c.Lookup)
	if asks(c, args) {
		return nil
	}
	words, err := o.SayWords(append(c.variables("SALLOC_"), args...))
	if err != nil {
		return err
	}
	_, quiet := o.Noted["quiet"]
	return c.allocate(ctx, o, words, len(words) == 0, quiet)
}

// allocate submits a job that runs one command on its first node, with this process's input and output. If the list
// `words` is empty, the command is a shell.
func (c *call) allocate(ctx context.Context, o *jobfile.Options, words []string, tty, quiet bool) error {
	command, name := `exec "${BASH:-/bin/sh}" -i`, "interactive"
	if len(words) > 0 {
		command, name = "exec", words[0]
		for _, word := range words {
			command += " " + jobfile.Quote(word)
		}
	}
	if c.name == "srun" {
		command = runnable(words[0]) + command
	}
	job, err := c.read(o, []byte("#!/bin/bash\n"+command+"\n"), strings.TrimPrefix(name, "/"), nil)
	if err != nil {
		return err
	}
	return submit.Interact(ctx, c.App, job, c.name, tty, quiet)
}

// runnable returns lines for the beginning of a script. If the program cannot be run, these lines end the script with
// the exit code and the message of a step.
func runnable(program string) (lines string) {
	fails := func(number syscall.Errno) string {
		code, line := execError(program, number)
		return fmt.Sprintf("{ printf %%s\\\\n %s >&2; exit %d; }", jobfile.Quote(strings.TrimSuffix(line, "\n")), code)
	}
	word := jobfile.Quote(program)
	if strings.Contains(program, "/") {
		lines = fmt.Sprintf("[ ! -e %[1]s ] || { [ -f %[1]s ] && [ -x %[1]s ]; } || %[2]s\n", word, fails(syscall.EACCES))
	}
	return lines + fmt.Sprintf("command -v %s >/dev/null || %s\n", word, fails(syscall.ENOENT))
}

// sprio fails: Candor has no priorities.
func sprio(context.Context, *call, []string) error {
	return errors.New("there are no priorities here: the bid of a job decides when it runs; \"candor why JOB\" says why a job waits")
}

// sreport fails, and names the commands that show the usage.
func sreport(context.Context, *call, []string) error {
	return errors.New("there are no reports here: \"candor statement\" lists what was charged, and sacct lists what jobs used")
}
