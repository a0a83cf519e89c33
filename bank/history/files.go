package history

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/candor-grid/candor/messages/durable"
)

// Files is a directory of files that are written once and read often. Written data survives the end of the process. It
// survives a loss of power only after Sync and then Commit.
type Files interface {
	// Write creates a file with the parts as its content. It replaces a file of the same name.
	Write(name string, parts ...[]byte) error
	// Append appends to a file, which it creates if needed.
	Append(name string, data []byte) error
	Open(name string) (File, error)
	// Sync makes the content of a file durable. Commit makes the names of all files durable.
	Sync(name string) error
	Commit() error
	// List returns the names of all files, in ascending order.
	List() ([]string, error)
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.Closer
	Size() (int64, error)
}

type disk struct{ dir string }

func (d disk) path(name string) string { return filepath.Join(d.dir, name) }

// Write writes a new file and renames it when it is complete, so that a reader of the old file keeps the old content.
func (d disk) Write(name string, parts ...[]byte) error {
	f, err := os.OpenFile(d.path(name+".new"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if _, err := f.Write(part); err != nil {
			return errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(d.path(name+".new"), d.path(name))
}

func (d disk) Append(name string, data []byte) error {
	f, err := os.OpenFile(d.path(name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

func (d disk) Open(name string) (File, error) {
	f, err := os.Open(d.path(name))
	if err != nil {
		return nil, err
	}
	return file{f}, nil
}

func (d disk) Sync(name string) error { return durable.Sync(d.path(name)) }
func (d disk) Commit() error          { return durable.Sync(d.dir) }

func (d disk) List() ([]string, error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

type file struct{ *os.File }

func (f file) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Directory opens a directory as Files. It makes the directory if needed. If the disk has no room for a segment, the
// segment waits in memory until Sync.
func Directory(dir string) (Files, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the bank's history: %w", err)
	}
	return &waiting{Files: disk{dir}, content: map[string][]byte{}}, nil
}

// Existing does the same as Directory, for a directory that must exist.
func Existing(dir string) (Files, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("the bank's history: %w", err)
	}
	return disk{dir}, nil
}
