package backup

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/candor-grid/candor/messages"
)

// Format is the version of the format of backups, and of the state directories in them. This build writes and reads
// only this version.
const Format = 2

// About describes a backup. It is at the end of the stream, so a stream without it was cut off.
type About struct {
	Format int       `json:"format"`
	Site   string    `json:"site"`
	Host   string    `json:"host,omitempty"` // the host whose replicas have the states
	Began  time.Time `json:"began"`          // everything acknowledged before this is in the backup
	Ended  time.Time `json:"ended"`
	Build  string    `json:"build"` // version of the program, as candor version prints it
	Files  int       `json:"files"` // number of files, without backup.json and SHA256SUMS
}

const (
	aboutFile = "backup.json"
	sumsFile  = "SHA256SUMS"
	errorFile = "error" // name of a file in a stream; it contains the error that ended the stream
)

// Stream writes a backup to a stream.
type Stream struct {
	tar   *tar.Writer
	about About
}

// NewStream begins a backup.
func NewStream(w io.Writer, about About) *Stream {
	about.Format = Format
	return &Stream{tar.NewWriter(w), about}
}

// Add adds a file of a given size.
func (s *Stream) Add(name string, size int64, content io.Reader) error {
	s.about.Files++
	return s.write(name, size, content)
}

func (s *Stream) write(name string, size int64, content io.Reader) error {
	if err := s.tar.WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o600, Format: tar.FormatPAX}); err != nil {
		return err
	}
	n, err := io.Copy(s.tar, content)
	if err == nil && n != size {
		err = fmt.Errorf("%s: has %d bytes, not %d", name, n, size)
	}
	return err
}

// Bytes adds a file with this content.
func (s *Stream) Bytes(name string, content []byte) error {
	return s.Add(name, int64(len(content)), reader(content))
}

// JSON adds a file with a value as JSON.
func (s *Stream) JSON(name string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return s.Bytes(name, append(text, '\n'))
}

// End ends the backup. The argument `failed` is the error that prevented a complete backup, or nil.
func (s *Stream) End(failed error) error {
	name := aboutFile
	var said any = &s.about
	if failed != nil {
		name, said = errorFile, messages.AsError("", failed)
	} else {
		s.about.Ended = time.Now().UTC()
	}
	text, err := json.MarshalIndent(said, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	return errors.Join(s.write(name, int64(len(text)), reader(text)), s.tar.Close())
}

var errCut = messages.Errorf(messages.Unavailable, "the site stopped in the middle of the backup; nothing was kept, so start the backup again")
