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

// Format is the version of the form of backups, which have state directories in them. This build
// writes and reads this one alone.
const Format = 2

// About says what a backup is of. In the stream it comes last, so a stream without it
// was cut.
type About struct {
	Format int       `json:"format"`
	Site   string    `json:"site"`
	Host   string    `json:"host,omitempty"` // whose replicas the states are of
	Began  time.Time `json:"began"`          // all that was acknowledged before is there
	Ended  time.Time `json:"ended"`
	Build  string    `json:"build"` // of the program, as candor version has it
	Files  int       `json:"files"` // that there are besides backup.json and SHA256SUMS
}

const (
	aboutFile = "backup.json"
	sumsFile  = "SHA256SUMS"
	errorFile = "error" // in a stream: why it ends here
)

// Stream is what a site writes a backup to.
type Stream struct {
	tar   *tar.Writer
	about About
}

// NewStream begins a backup.
func NewStream(w io.Writer, about About) *Stream {
	about.Format = Format
	return &Stream{tar.NewWriter(w), about}
}

// Add adds a file of a size.
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

// Bytes adds a file.
func (s *Stream) Bytes(name string, content []byte) error {
	return s.Add(name, int64(len(content)), reader(content))
}

// JSON adds a file that has a value.
func (s *Stream) JSON(name string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return s.Bytes(name, append(text, '\n'))
}

// End ends the backup: whole, or with the error for which it is not.
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

// errCut is of a stream that ended before its backup was whole.
var errCut = messages.Errorf(messages.Unavailable, "the site stopped in the middle of the backup; nothing was kept, so start it again")
