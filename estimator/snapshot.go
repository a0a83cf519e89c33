package estimator

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/estimator/memory"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/durable"
	"github.com/candor-grid/candor/messages/parts"
	"github.com/candor-grid/candor/messages/wire"
)

// SnapshotFile is the name of the snapshot in Config.Dir. The file begins with the line in the constant magic. Then
// come the records, and before each record its length. The first record is a header. A checksum ends the file.
const SnapshotFile = "memory"

// magic is the first line. Its number changes if the meaning of the records changes.
const magic = "candor estimator 1\n"

type header struct {
	Site     messages.Name
	Sequence uint64   // number of the last message in the memory
	Profiles [32]byte // hash of the job profile classes
	Records  uint64   // number of records that follow
}

func (c *Config) profilesHash() ([32]byte, error) {
	h := sha256.New()
	for i := range c.Profiles {
		encoded, err := wire.Marshal(&c.Profiles[i], wire.Msgpack)
		if err != nil {
			return [32]byte{}, err
		}
		h.Write(encoded)
	}
	return [32]byte(h.Sum(nil)), nil
}

// save writes a snapshot if something changed since the last one. Requests wait only while the memory is copied.
func (e *Estimator) save() {
	if e.config.Dir == "" {
		return
	}
	e.mu.Lock()
	sequence, news := e.sequence, e.sequence != e.saved
	var records []memory.Record
	if news {
		records = e.memory.Snapshot()
	}
	e.mu.Unlock()
	if !news {
		return
	}
	if err := e.write(sequence, records); err != nil {
		e.metrics.snapshots.WithLabelValues("failed").Inc()
		e.config.Log.Warn("cannot write a snapshot; a restart will read more of the stream", zap.Error(err))
		return
	}
	e.metrics.snapshots.WithLabelValues("written").Inc()
	e.mu.Lock()
	e.saved = sequence
	e.mu.Unlock()
}

// write writes the snapshot to a new file, and then puts the new file in place of the old one.
func (e *Estimator) write(sequence uint64, records []memory.Record) error {
	if err := os.MkdirAll(e.config.Dir, 0o700); err != nil {
		return err
	}
	return durable.Replace(filepath.Join(e.config.Dir, SnapshotFile), 0o600, func(f *os.File) error {
		return encode(f, &e.config, sequence, records)
	})
}

func encode(to io.Writer, c *Config, sequence uint64, records []memory.Record) error {
	profiles, err := c.profilesHash()
	if err != nil {
		return err
	}
	_, err = parts.WriteHashed(to, func(w io.Writer) error {
		if _, err := io.WriteString(w, magic); err != nil {
			return err
		}
		if err := parts.Write(w, header{c.Site, sequence, profiles, uint64(len(records))}); err != nil {
			return err
		}
		return parts.Write(w, records...)
	})
	return err
}

// load continues from the snapshot, if there is one that can be used. If there is none, the estimator reads all recent
// observations from the stream.
func (e *Estimator) load() {
	if e.config.Dir == "" {
		return
	}
	path := filepath.Join(e.config.Dir, SnapshotFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var learned *memory.Memory
	sequence := uint64(0)
	if err == nil {
		learned, sequence, err = decode(data, &e.config)
	}
	if err != nil {
		e.metrics.snapshots.WithLabelValues("refused").Inc()
		e.config.Log.Warn("the snapshot is not used; the stream is read from its beginning", zap.String("file", path), zap.Error(err))
		return
	}
	e.metrics.snapshots.WithLabelValues("read").Inc()
	e.memory, e.sequence, e.saved = learned, sequence, sequence
}

func decode(data []byte, c *Config) (*memory.Memory, uint64, error) {
	var h header
	var records []memory.Record
	err := parts.ReadHashed(bytes.NewReader(data), func(r io.Reader) error {
		first := make([]byte, len(magic))
		if _, err := io.ReadFull(r, first); err != nil || string(first) != magic {
			return errors.New("the snapshot is damaged, or has another version")
		}
		if err := parts.Read(r, 1, func(first *header) { h = *first }); err != nil {
			return err
		}
		if err := h.fits(c); err != nil {
			return err
		}
		return parts.Read(r, int(min(h.Records, math.MaxInt32)), func(next *memory.Record) { records = append(records, *next) })
	})
	if err != nil {
		return nil, 0, err
	}
	learned, err := memory.Restore(c.Profiles, records)
	return learned, h.Sequence, err
}

func (h *header) fits(c *Config) error {
	profiles, err := c.profilesHash()
	switch {
	case err != nil:
		return err
	case h.Site != c.Site:
		return fmt.Errorf("the snapshot belongs to site %s", h.Site)
	case h.Profiles != profiles:
		return errors.New("the job profile classes have changed since the snapshot")
	}
	return nil
}
