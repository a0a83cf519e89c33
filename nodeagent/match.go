package nodeagent

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

const mostEntries = 1 << 20

// search looks for the names in a task's directory that match a pattern. A task can make any directory and link. So the
// search follows a link to a directory only if the pattern names the link, and reads a limited number of entries.
type search struct {
	ctx   context.Context
	root  *os.Root
	most  int
	left  int // entries that may still be read
	names []string
}

// matching returns the names below root that match at least one of the patterns, each name once. The argument `most`
// bounds the number of directory entries that it reads.
func matching(ctx context.Context, root *os.Root, patterns []string, most int) ([]string, error) {
	s := &search{ctx: ctx, root: root, most: most, left: most}
	for _, pattern := range patterns {
		if err := job.CheckFileName("output", pattern); err != nil {
			return nil, err
		}
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, messages.Errorf(messages.Invalid, "pattern %q: %v", pattern, err)
		}
		if err := s.match("", strings.Split(pattern, "/")); err != nil {
			return nil, err
		}
	}
	slices.Sort(s.names)
	return slices.Compact(s.names), nil
}

// match adds the names below dir that match the elements of a pattern.
func (s *search) match(dir string, elements []string) error {
	element, rest := elements[0], elements[1:]
	if strings.ContainsAny(element, `*?[\`) {
		return s.each(dir, element, rest)
	}
	name := path.Join(dir, element)
	if len(rest) > 0 {
		return s.match(name, rest)
	}
	if _, err := s.root.Lstat(name); err == nil {
		s.names = append(s.names, name)
	}
	return nil
}

// each looks for the entries of the directory `dir` whose names match `element`. For each such entry it calls the
// method match with `rest`, the elements that follow. The elements are the parts of a pattern between its slashes.
func (s *search) each(dir, element string, rest []string) error {
	const atOnce = 256
	const flags = os.O_RDONLY | syscall.O_DIRECTORY | syscall.O_NONBLOCK
	at, err := s.root.OpenFile(path.Join(".", dir), flags, 0)
	if errors.Is(err, fs.ErrPermission) {
		return messages.Errorf(messages.PermissionDenied, "%s: cannot be read: %v", dir, err)
	}
	if err != nil { // the directory is missing, or it is not a directory
		return nil
	}
	defer at.Close()
	for {
		entries, err := at.ReadDir(atOnce)
		if s.left -= len(entries); s.left < 0 {
			return messages.Errorf(messages.TooLarge, "the search for output files was ended after %d files and directories: name outputs with fewer wildcards, or put the outputs in a directory of their own", s.most)
		}
		if s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		for _, e := range entries {
			if err := s.entry(dir, e, element, rest); err != nil {
				return err
			}
		}
		if err == io.EOF || err != nil && len(entries) == 0 {
			return nil
		}
	}
}

func (s *search) entry(dir string, e fs.DirEntry, element string, rest []string) error {
	if is, _ := path.Match(element, e.Name()); !is {
		return nil
	}
	name := path.Join(dir, e.Name())
	if len(rest) == 0 {
		s.names = append(s.names, name)
		return nil
	}
	if !e.IsDir() {
		return nil
	}
	return s.match(name, rest)
}
