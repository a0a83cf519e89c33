package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
)

// contentsFile is the list of full files with their jobs. With this list, a start need not read the files.
const contentsFile = "contents"

// contents is what the first line of contentsFile says. The second line is the CRC-32C of the first.
type contents struct {
	Format   int
	Complete messages.Time // all jobs that ended later are in the archive
	Segments []*segment
}

const contentsFormat = 1

// save writes the list of full files. If that fails, the next start rebuilds the list.
func (a *Archive) save() {
	if err := a.write(); err != nil {
		a.Log.Warn("the list of the archive's files was not written; the next start reads all files", zap.Error(err))
	}
}

func (a *Archive) write() error {
	text, err := json.Marshal(contents{contentsFormat, a.complete, a.full})
	if err != nil {
		return err
	}
	text = fmt.Appendf(text, "\n%08x\n", crc32.Checksum(text, castagnoli))
	path := filepath.Join(a.Dir, contentsFile)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// readContents reads the list of files. An error means that the list cannot be used.
func readContents(dir string) (c contents, err error) {
	text, err := os.ReadFile(filepath.Join(dir, contentsFile))
	if err != nil {
		return c, err
	}
	line, sum, _ := bytes.Cut(text, []byte("\n"))
	if string(sum) != fmt.Sprintf("%08x\n", crc32.Checksum(line, castagnoli)) {
		return c, errors.New("it is damaged")
	}
	if err := json.Unmarshal(line, &c); err != nil {
		return c, err
	}
	if c.Format > contentsFormat {
		return c, messages.NewerFormat("the archive of jobs", c.Format, contentsFormat)
	}
	return c, nil
}

// load finds out which records the directory has. It reads the stored list of full files, and then the files that are
// not in this list.
func (a *Archive) load() error {
	c, err := readContents(a.Dir)
	if messages.KindOf(err) == messages.Conflict {
		return err
	}
	if passing(err) {
		return fmt.Errorf("the archive of jobs: %w", err) // without the list, the archive would not notice that files are missing
	}
	a.fresh = errors.Is(err, fs.ErrNotExist)
	if err != nil && !a.fresh {
		a.Log.Error("the list of the archive's files is not used; all files are read", zap.String("file", filepath.Join(a.Dir, contentsFile)), zap.Error(err))
	}
	a.complete = c.Complete
	listed := map[uint64]*segment{}
	for _, s := range c.Segments {
		listed[s.Number] = s
	}
	numbers, err := a.numbers()
	if err != nil {
		return err
	}
	a.fresh = a.fresh && len(numbers) == 0
	for _, n := range numbers {
		if err := a.admit(n, listed[n]); err != nil {
			return err
		}
		delete(listed, n)
	}
	for _, s := range listed {
		a.Log.Error("a file of the archive is missing: its jobs are no longer listed, unless another replica has them", zap.String("file", a.path(s)), zap.Int("jobs", s.Records))
		a.lose(s.Last)
	}
	a.next = 1 + slices.Max(append(numbers, 0))
	a.save()
	return nil
}

func (a *Archive) numbers() (all []uint64, err error) {
	entries, err := os.ReadDir(a.Dir)
	if err != nil {
		return nil, fmt.Errorf("the archive of jobs: %w", err)
	}
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), suffix)
		if n, err := strconv.ParseUint(base, 10, 64); ok && err == nil {
			all = append(all, n)
		}
	}
	return all, nil
}

// admit adds a full file to the archive. If the list of files lacks this file, or has another length for it, admit
// reads the whole file.
func (a *Archive) admit(number uint64, s *segment) error {
	path := a.path(&segment{Number: number})
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("the archive of jobs: %w", err)
	}
	if s == nil || info.Size() != s.Bytes {
		if s != nil {
			a.Log.Error("a file of the archive is shorter or longer than before", zap.String("file", path), zap.Int64("bytes", info.Size()), zap.Int64("were", s.Bytes))
		}
		if s, err = a.reread(number, path); s == nil {
			return err
		}
	}
	a.full = append(a.full, s)
	a.bytes += s.Bytes
	return nil
}

// reread reads a file to find its records. It cuts off an incomplete last record, which a power loss left.
func (a *Archive) reread(number uint64, path string) (*segment, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the archive of jobs: %w", err)
	}
	s, damage, err := survey(number, file)
	if messages.KindOf(err) == messages.Conflict {
		return nil, messages.Errorf(messages.Conflict, "%s: %v", path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	a.report(path, damage)
	if len(damage) > 0 {
		a.lose(s.Last)
	}
	if s.Bytes < int64(len(file)) {
		a.Log.Warn("removed the bytes after the last record of a file of the archive", zap.String("file", path), zap.Int64("at", s.Bytes))
		if err := os.Truncate(path, s.Bytes); err != nil {
			return nil, fmt.Errorf("the archive of jobs: %w", err)
		}
	}
	return s, nil
}
