package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/candor-grid/candor/messages/durable"
)

// A file must be replaced completely or not at all, and no temporary file may remain.
func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	expect := func(want string) {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil || string(text) != want {
			t.Errorf("%q, %v; want %q", text, err, want)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%v, %v beside the file", entries, err)
		}
	}
	for _, text := range []string{"first", "second"} {
		if err := durable.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		expect(text)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	fails := errors.New("fails")
	err := durable.Replace(path, 0o600, func(f *os.File) error {
		_, err := f.WriteString("half")
		return errors.Join(err, fails)
	})
	if !errors.Is(err, fails) {
		t.Errorf("%v", err)
	}
	expect("second")
	if err := durable.WriteFile(filepath.Join(dir, "none", "f"), nil, 0o600); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in a directory that is not there: %v", err)
	}
}

// WriteFile must refuse to replace a path that is not a file, such as a pipe. If the path is a link, WriteFile must
// replace the file to which the link leads.
func TestOnlyFilesAreReplaced(t *testing.T) {
	dir := t.TempDir()
	pipe, file, link, toPipe := filepath.Join(dir, "pipe"), filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "to-pipe")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.WriteFile(file, []byte("old"), 0o600), os.Symlink(file, link), os.Symlink(pipe, toPipe)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, toPipe, dir} {
		if err := durable.WriteFile(path, nil, 0o600); err == nil {
			t.Errorf("%s was replaced", path)
		}
	}
	if err := durable.WriteFile(link, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "new" {
		t.Errorf("behind the link is %q, %v", text, err)
	}
	for path, want := range map[string]fs.FileMode{pipe: fs.ModeNamedPipe, toPipe: fs.ModeSymlink, link: fs.ModeSymlink} {
		if info, err := os.Lstat(path); err != nil || info.Mode().Type() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// A renamed directory must have all its contents, including things that are not files.
func TestRenameTree(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	if err := errors.Join(os.MkdirAll(filepath.Join(from, "below"), 0o700), os.WriteFile(filepath.Join(from, "below", "f"), []byte("text"), 0o600),
		os.Symlink("nowhere", filepath.Join(from, "link"))); err != nil {
		t.Fatal(err)
	}
	if err := durable.RenameTree(from, to); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(to, "below", "f")); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
	if err := durable.RenameTree(from, to); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of a directory that is not there: %v", err)
	}
}
