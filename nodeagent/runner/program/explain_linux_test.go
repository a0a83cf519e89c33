package program

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A user names files below a directory that the user may not enter. The reason why a task does not start must be the
// same for files that exist and for files that do not exist.
func TestReasonsDoNotSayWhichFilesOfOthersExist(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	top, err := os.MkdirTemp("/var/tmp", "closed")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(top)
	if err := os.Mkdir(filepath.Join(top, "name"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, "name", "name"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	as := &syscall.Credential{Uid: 65534, Gid: 65534}
	for what, why := range map[string]func(name string) string{
		"directory": func(name string) string {
			return (&Program{Dir: "x", As: as}).Explain(filepath.Join(top, name), syscall.EACCES)
		},
		"no directory": func(name string) string {
			return (&Program{Dir: "x", As: as}).Explain(filepath.Join(top, "name", name), syscall.ENOTDIR)
		},
		"command": func(name string) string {
			return (&Program{Path: filepath.Join(top, name, name), As: as}).Explain("/", syscall.EACCES)
		},
		"command in PATH": func(name string) string {
			_, err := LookUp(name, []string{"PATH=" + filepath.Join(top, "name")}, as)
			return err.Error()
		},
	} {
		if is, missing := why("name"), strings.ReplaceAll(why("nope"), "nope", "name"); is != missing {
			t.Errorf("%s: %q, or %q if it does not exist", what, is, missing)
		}
	}
}

// The owner of a file must learn which directory above it is closed to the user of the tasks: access to the file alone
// is not enough.
func TestReasonsNameTheClosedDirectoryAboveAFile(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	top, err := os.MkdirTemp("/var/tmp", "closed")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(top)
	as, file := &syscall.Credential{Uid: 65534, Gid: 65534}, filepath.Join(top, "work", "run")
	parent := "setfacl -m u:65534:x " + top + "; "
	if why, want := (&Program{Dir: "x", As: as}).Explain(file, syscall.EACCES), parent+"setfacl -m u:65534:rwx "+file; !strings.HasSuffix(why, want) {
		t.Errorf("the directory: %q", why)
	}
	if why, want := (&Program{Path: file, As: as}).Explain("/", syscall.EACCES), parent+"setfacl -m u:65534:rx "+file; !strings.HasSuffix(why, want) {
		t.Errorf("the command: %q", why)
	}
	open := filepath.Join(top, "open")
	for _, err := range []error{os.Chmod(top, 0o755), os.Mkdir(open, 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if why := (&Program{Dir: "x", As: as}).Explain(open, syscall.EACCES); !strings.HasSuffix(why, "allow this: setfacl -m u:65534:rwx "+open) {
		t.Errorf("no directory above is closed: %q", why)
	}
}
