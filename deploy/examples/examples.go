package examples

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
)

//go:embed trace-analysis
var files embed.FS

// TraceAnalysis returns the workload of "candor demo": jobs that analyse a year of a machine's log, and their correct
// answers. It has these parts:
//
//	workload.yaml          who submits what, and when
//	jobs/*.yaml            job files
//	*.sh, *.awk, analyses  what the jobs run
//	*.swf.gz               the log
//	answers/*.txt          the known answer of each submission
//	ATTRIBUTION.md         the source of the data, and its terms
func TraceAnalysis() fs.FS {
	sub, err := fs.Sub(files, "trace-analysis")
	if err != nil {
		panic(err) // cannot happen: the path is a valid constant
	}
	return sub
}

// Unpack writes the files of an example to dir, which it makes if it is missing. It returns an error if a file already
// exists.
func Unpack(example fs.FS, dir string) error {
	if err := os.CopyFS(dir, example); err != nil {
		return fmt.Errorf("unpacking the example: %w", err)
	}
	return nil
}
