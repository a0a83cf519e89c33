// Package durable writes files that are there, and whole, after a loss of power, and reads them.
// A file that is only written and renamed has its name then, and perhaps no content.
package durable

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// WriteFile puts a whole new file in place of any old one. It returns once the disk has the
// file; after an error the old one is there.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	return Replace(path, mode, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
}

// Replace is WriteFile of what write writes. write may set more of the file, such as its owner.
func Replace(path string, mode fs.FileMode, write func(*os.File) error) error {
	path, err := Place(path)
	if err != nil {
		return err
	}
	aside, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-")
	if err != nil {
		return err
	}
	defer os.Remove(aside.Name())
	if err := errors.Join(write(aside), aside.Chmod(mode), aside.Sync(), aside.Close()); err != nil {
		return err
	}
	return Rename(aside.Name(), path)
}

// ReadJSON reads a file of JSON into a value. Where no file is, the value stays as it is.
func ReadJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// Place is where a new file goes that takes the place of path: links stay links. An error
// says that path is something other than a file, such as a device, which a new file would
// remove.
func Place(path string) (string, error) {
	place, err := filepath.EvalSymlinks(path)
	if err != nil {
		return path, nil // nothing is there, or a link to nothing; else making the file says what is wrong
	}
	if info, err := os.Stat(place); err == nil && !info.Mode().IsRegular() {
		return "", &fs.PathError{Op: "replace", Path: path, Err: errors.New("it is not a regular file")}
	}
	return place, nil
}

// Rename gives a file or directory another name. The disk must have its content.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return Sync(filepath.Dir(to))
}

// Sync returns once the disk has a file, or the names in a directory.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil // a file system that keeps directories in its own manner
	}
	return errors.Join(err, f.Close())
}

// RenameTree gives a directory another name, once the disk has everything below it.
func RenameTree(from, to string) error {
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() && !e.Type().IsRegular() {
			return err
		}
		return Sync(path)
	})
	if err != nil {
		return err
	}
	return Rename(from, to)
}
