package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/durable"
)

func reader(b []byte) io.Reader { return bytes.NewReader(b) }

// Receive writes a backup into a directory, which must be empty or missing.
func Receive(dir string, stream io.Reader) (about About, err error) {
	if err := Empty(dir); err != nil {
		return about, err
	}
	aside := filepath.Clean(dir) + ".incomplete"
	if err := os.RemoveAll(aside); err != nil { // an interrupted backup may have left this directory
		return about, err
	}
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return about, fmt.Errorf("backup: %w", err)
	}
	if about, err = receive(aside, stream); err != nil {
		return about, errors.Join(err, os.RemoveAll(aside))
	}
	if err := durable.RenameTree(aside, filepath.Clean(dir)); err != nil {
		return about, fmt.Errorf("backup: %w", err)
	}
	return about, nil
}

// Empty returns an error if a directory is not empty.
func Empty(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return messages.Errorf(messages.Invalid, "%s: cannot be used: %v", dir, err)
	case len(entries) > 0:
		return messages.Errorf(messages.Conflict, "%s: is not empty; name a new directory", dir)
	}
	return nil
}

func receive(dir string, stream io.Reader) (about About, err error) {
	var sums strings.Builder
	files := 0
	for t := tar.NewReader(stream); ; files++ {
		h, err := t.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return about, errCut
		}
		if err != nil {
			return about, fmt.Errorf("backup: %w", err)
		}
		if !filepath.IsLocal(h.Name) {
			return about, messages.Errorf(messages.Invalid, "backup: the site sent the file name %q, which leads out of the backup's directory", h.Name)
		}
		if h.Name == errorFile {
			why := new(messages.Error)
			if err := json.NewDecoder(io.LimitReader(t, 64<<10)).Decode(why); err != nil {
				return about, fmt.Errorf("backup: %w", err)
			}
			return about, messages.Errorf(why.Kind, "the site could not make the backup: %s", why.Message)
		}
		sum, err := keep(filepath.Join(dir, h.Name), t)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return about, errCut
		}
		if err != nil {
			return about, fmt.Errorf("backup: %w", err)
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum, h.Name)
		if h.Name == aboutFile {
			break
		}
	}
	if _, err := keep(filepath.Join(dir, sumsFile), strings.NewReader(sums.String())); err != nil {
		return about, fmt.Errorf("backup: %w", err)
	}
	if about, err = readAbout(dir); err == nil && about.Files != files {
		err = errCut
	}
	return about, err
}

// keep writes a file and returns its SHA-256 checksum.
func keep(path string, content io.Reader) (string, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, sum), content)
	return hex.EncodeToString(sum.Sum(nil)), errors.Join(err, f.Close())
}

// Backup is a directory with a complete backup.
type Backup struct {
	About About
	dir   string
	names []string
}

// Open opens a backup and checks every file of it.
func Open(dir string) (*Backup, error) {
	sums, err := os.ReadFile(filepath.Join(dir, sumsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, messages.Errorf(messages.Invalid, "%s: is no backup, or an incomplete one: it has no file %s", dir, sumsFile)
	}
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	b := &Backup{dir: dir}
	for _, line := range strings.Split(strings.TrimSuffix(string(sums), "\n"), "\n") {
		want, name, ok := strings.Cut(line, "  ")
		if !ok || !filepath.IsLocal(name) {
			return nil, damaged(dir, sumsFile, "the file has a line that is not a checksum")
		}
		if err := check(dir, name, want); err != nil {
			return nil, err
		}
		b.names = append(b.names, name)
	}
	slices.Sort(b.names)
	if !slices.Contains(b.names, aboutFile) {
		return nil, damaged(dir, sumsFile, "the file does not name "+aboutFile)
	}
	if b.About, err = readAbout(dir); err != nil {
		return nil, err
	}
	if b.About.Files != len(slices.Compact(slices.Clone(b.names)))-1 {
		return nil, damaged(dir, sumsFile, fmt.Sprintf("the file names %d files, but the backup has %d", len(b.names)-1, b.About.Files))
	}
	return b, nil
}

func check(dir, name, want string) error {
	f, err := os.Open(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return messages.Errorf(messages.Invalid, "%s: the backup is incomplete: the file is missing", filepath.Join(dir, name))
	}
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		return damaged(dir, name, "the SHA-256 of the file is "+got+", not "+want)
	}
	return nil
}

func damaged(dir, name, why string) error {
	return messages.Errorf(messages.Invalid, "%s: the backup is damaged: %s", filepath.Join(dir, name), why)
}

func readAbout(dir string) (about About, err error) {
	text, err := os.ReadFile(filepath.Join(dir, aboutFile))
	if err != nil {
		return about, fmt.Errorf("backup: %w", err)
	}
	if err := json.Unmarshal(text, &about); err != nil {
		return about, damaged(dir, aboutFile, err.Error())
	}
	if about.Format != Format {
		return about, messages.Errorf(messages.Invalid, "%s: is of format %d, and this build reads only format %d; restore the backup with the version that made it", dir, about.Format, Format)
	}
	return about, nil
}

// Below lists the files under a directory of the backup. The names are relative to this directory.
func (b *Backup) Below(dir string) (names []string) {
	for _, name := range b.names {
		if rest, ok := strings.CutPrefix(name, dir+"/"); ok {
			names = append(names, rest)
		}
	}
	return names
}

// Has reports whether the backup has a file with this name.
func (b *Backup) Has(name string) bool { return slices.Contains(b.names, name) }

// Path returns the path of a file of the backup.
func (b *Backup) Path(name string) string { return filepath.Join(b.dir, name) }

// JSON decodes a JSON file of the backup into a value.
func (b *Backup) JSON(name string, value any) error {
	text, err := os.ReadFile(b.Path(name))
	if err == nil {
		err = json.Unmarshal(text, value)
	}
	if err != nil {
		return fmt.Errorf("backup: %s: %w", b.Path(name), err)
	}
	return nil
}

// Copy copies a file of the backup to a path.
func (b *Backup) Copy(name, to string) error {
	f, err := os.Open(b.Path(name))
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer f.Close()
	if _, err := keep(to, f); err != nil {
		return fmt.Errorf("restoring %s: %w", to, err)
	}
	return nil
}
