package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// receive is the script with which each node stores a file. Its arguments are the name, the permissions, and whether
// an existing file must stay.
const receive = `[ -z "$3" ] || [ ! -e "$1" ] || { echo "sbcast: error: $1 is there already: use --force" >&2; exit 1; }
t=$1.sbcast.$$; cat >"$t" && chmod "$2" "$t" && mv -f "$t" "$1" || { rm -f "$t"; exit 1; }`

func sbcast(ctx context.Context, c *call, args []string) error {
	f := c.flags
	force := f.BoolP("force", "f", false, "")
	job := f.StringP("jobid", "j", "", "")
	c.ignore([]string{"fanout/F", "size/s", "timeout/t"}, []string{"preserve/p", "verbose/v", "compress/C"})
	words, done, err := c.parse(args)
	switch {
	case done || err != nil:
		return err
	case len(words) != 2:
		return errors.New("Need two file names: sbcast SOURCE DESTINATION")
	case c.Getenv("CANDOR_JOB") == "":
		return errors.New("Need a job: sbcast copies to the nodes of the job in which it is called")
	case *job != "" && *job != c.Getenv("CANDOR_JOB") && *job != c.Getenv("SLURM_JOB_ID"):
		return fmt.Errorf("--jobid %s: sbcast copies to the nodes of the job in which it is called, and this is job %s", *job, c.Getenv("CANDOR_JOB"))
	}
	source, err := os.Open(words[0])
	if err != nil {
		return fmt.Errorf("Can't open `%s`: %w", words[0], err)
	}
	defer source.Close()
	info, err := source.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", words[0])
	}
	if err == nil {
		err = syscall.Dup3(int(source.Fd()), 0, 0) // the file becomes the standard input of this process, and the step reads it
	}
	if err != nil {
		return err
	}
	to, keep := words[1], "keep"
	if strings.HasSuffix(to, "/") {
		to += filepath.Base(words[0])
	}
	if *force {
		keep = ""
	}
	components, err := c.components()
	if err != nil {
		return err
	}
	var all []segment
	for _, of := range components {
		w := &step{ranks: of.nodes, perNode: 1, nodes: strconv.Itoa(of.nodes), overlap: true, mpi: "none", group: strconv.Itoa(of.group)}
		all = append(all, segment{c, w, []string{"/bin/sh", "-c", receive, "sbcast", to, fmt.Sprintf("%o", info.Mode().Perm()), keep}})
	}
	return c.step(ctx, all)
}
