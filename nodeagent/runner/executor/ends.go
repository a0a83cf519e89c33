package executor

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"

	"github.com/candor-grid/candor/messages/durable"
	"github.com/candor-grid/candor/messages/parts"
)

// endsFile is the file to which an executor writes the ends of its tasks if no agent comes back. The next executor
// reads it.
const endsFile = "executor.ends"

// writeEnds writes the ends of tasks to a file, as frames of the kind "has". It returns when the file is on the disk.
func writeEnds(path string, all []frame) error {
	return durable.Replace(path, 0o600, func(f *os.File) error {
		_, err := parts.WriteHashed(f, func(w io.Writer) error {
			return errors.Join(parts.Write(w, uint64(len(all))), parts.Write(w, all...))
		})
		return err
	})
}

// readEnds reads the file that says how tasks ended. If there is no file, no task has ended.
func readEnds(path string) (all []frame, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = parts.ReadHashed(bytes.NewReader(data), func(r io.Reader) error {
		n := uint64(0)
		if err := parts.Read(r, 1, func(first *uint64) { n = *first }); err != nil {
			return err
		}
		return parts.Read(r, int(min(n, math.MaxInt32)), func(f *frame) { all = append(all, *f) })
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}
