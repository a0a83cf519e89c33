package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
)

// programs returns a shell command in which each rank starts its own program. The argument `text` is the content of a
// file for srun --multi-prog. A line of this file is "0-2,5 program arguments" for the ranks 0, 1, 2 and 5, or "*
// program arguments" for all other ranks. In the arguments, %t is the number of the rank, and %o is its position among
// the ranks of its line.
func programs(text string, ranks int) (words []string, err error) {
	var cases strings.Builder
	taken := make([]bool, ranks)
	for number, line := range strings.Split(text, "\n") {
		of, err := jobfile.Words(line)
		if err != nil || len(of) == 1 {
			return nil, fmt.Errorf("line %d of the configuration file names no program for tasks: %q", number+1, line)
		}
		if len(of) == 0 {
			continue
		}
		all := make([]int64, 0, ranks)
		if of[0] == "*" {
			for i := range ranks {
				all = append(all, int64(i))
			}
		} else if all, err = indicesOf(of[0]); err != nil {
			return nil, fmt.Errorf("line %d of the configuration file: %w", number+1, err)
		}
		for offset, rank := range all {
			if rank < 0 || rank >= int64(ranks) || taken[rank] {
				continue
			}
			taken[rank] = true
			fmt.Fprintf(&cases, "%d) exec", rank)
			for _, word := range of[1:] {
				word = strings.NewReplacer("%t", strconv.FormatInt(rank, 10), "%o", strconv.Itoa(offset)).Replace(word)
				cases.WriteString(" " + jobfile.Quote(word))
			}
			cases.WriteString(";;\n")
		}
	}
	for rank, has := range taken {
		if !has {
			return nil, fmt.Errorf("Configuration file invalid, no record for task id %d", rank)
		}
	}
	return []string{"/bin/sh", "-c", "case $SLURM_PROCID in\n" + cases.String() + "esac"}, nil
}
