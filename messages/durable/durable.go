// Package durable writes files that are complete even after a loss of power, and reads them. After a plain write and
// rename, a loss of power can leave the name without the content.
package durable

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// WriteFile replaces a file as a whole. It returns when the new file is on the disk; after an error the old one
// remains.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	return Replace(path, mode, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
}

// Replace replaces a file in the same way as WriteFile. The function `write` writes the content. It may also change the
// file's attributes, such as its owner.
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

// ReadJSON reads a JSON file into a value. If there is no file, the value is unchanged.
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

// Place returns where to write a new file that replaces path. If path is a link, it is the link's target. If path is no
// file, for example a device, Place returns an error.
func Place(path string) (string, error) {
	place, err := filepath.EvalSymlinks(path)
	if err != nil {
		return path, nil // there is no file, or a link to a missing file; other errors show when the file is created
	}
	if info, err := os.Stat(place); err == nil && !info.Mode().IsRegular() {
		return "", &fs.PathError{Op: "replace", Path: path, Err: errors.New("it is not a regular file")}
	}
	return place, nil
}

// Rename renames a file or directory. When it returns, the new name is on the disk. The content must already be there.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return Sync(filepath.Dir(to))
}

// Sync returns when a file, or the names in a directory, are on the disk.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil // some file systems cannot sync directories
	}
	return errors.Join(err, f.Close())
}

// RenameTree syncs everything under a directory, then renames it.
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
