package history

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/candor-grid/candor/messages"
)

// This line begins a file with a checked image. The file continues with a number that grows with each file (8 bytes,
// little endian). Then it has the HMAC-SHA256 of the number and the image, and at the end the image.
const checkedMagic = "candor-checked-1\n"

// checkedNames are the two files of the last two images. A new image replaces the older of the two. The newer of the
// two must stay: the newest complete snapshot belongs to it, as long as the snapshot of the new image is not complete.
// The process may end before that.
var checkedNames = [2]string{"checked-0", "checked-1"}

// Checked keeps the last two images whose records this replica has checked. It is safe for concurrent use.
type Checked struct {
	files Files
	key   func() ([]byte, error)

	mu     sync.Mutex
	last   uint64            // number of the newest file; 0 if the files were not read yet, or there are none
	newest [sha256.Size]byte // digest of the image in the newest file
}

// NewChecked returns the checked images in a directory. The images are sealed with a key, so a person who can only
// write to the disk cannot forge an image.
func NewChecked(files Files, key func() ([]byte, error)) *Checked {
	return &Checked{files: files, key: key}
}

// Images returns the sealed images, the newest first. Its error says why an image cannot be used.
func (c *Checked) Images() ([][]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	return c.read(key)
}

// read returns the sealed images, the newest first.
func (c *Checked) read(key []byte) (images [][]byte, failed error) {
	c.last = 0
	for _, name := range checkedNames {
		image, number, err := c.one(name, key)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
		case number > c.last:
			images = append([][]byte{image}, images...)
			c.last, c.newest = number, sha256.Sum256(image)
		default:
			images = append(images, image)
		}
	}
	return images, failed
}

func (c *Checked) one(name string, key []byte) (image []byte, number uint64, err error) {
	b, err := load(c.files, name)
	if err != nil {
		return nil, 0, err
	}
	const begin = len(checkedMagic) + 8
	if len(b) < begin+sha256.Size || string(b[:len(checkedMagic)]) != checkedMagic {
		if err := messages.CheckFormat("it", string(b[:min(len(b), len(checkedMagic))]), checkedMagic); err != nil {
			return nil, 0, err
		}
		return nil, 0, errors.New("it is damaged")
	}
	image = b[begin+sha256.Size:]
	if !hmac.Equal(b[begin:begin+sha256.Size], sealOf(key, b[:begin], image)) {
		return nil, 0, errors.New("it is damaged, or it was sealed with another key or by another replica")
	}
	return image, binary.LittleEndian.Uint64(b[len(checkedMagic):]), nil
}

func sealOf(key, head, image []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(head)  //nolint:errcheck // writing to a hash cannot fail
	h.Write(image) //nolint:errcheck // writing to a hash cannot fail
	return h.Sum(nil)
}

// Keep stores an image whose records this replica has checked, and makes it durable. Two files hold the last two
// images. If the newer file has this image already, Keep does nothing.
func (c *Checked) Keep(image []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	key, err := c.key()
	if err != nil {
		return err
	}
	if c.last == 0 {
		_, _ = c.read(key) // a file that cannot be used is replaced
	}
	digest := sha256.Sum256(image)
	if c.last > 0 && digest == c.newest {
		return nil
	}
	number := c.last + 1
	name := checkedNames[number%2]
	head := binary.LittleEndian.AppendUint64([]byte(checkedMagic), number)
	err = c.files.Write(name, head, sealOf(key, head, image), image)
	if err == nil {
		err = errors.Join(c.files.Sync(name), c.files.Commit())
	}
	if err == nil {
		c.last, c.newest = number, digest
	}
	return err
}
