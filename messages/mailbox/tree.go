package mailbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// The layout of a file of bbolt, as far as it says which page leads to which.
const (
	treeMagic   = 0xED0CDAED
	treeHeader  = 16 // bytes of a page's header, and of an element of a branch or a leaf
	treeBranch  = 0x01
	treeLeaf    = 0x02
	treeBucket  = 0x01 // of a leaf's element: its value is a bucket's header
	treeMetaSum = 72   // where the checksum of a meta page is
)

// tree is the pages of a bbolt file. The library follows them without end where damage
// has made a circle of them, and remembers each step, until the memory is full.
type tree struct {
	file io.ReaderAt
	size int64
	page int64 // bytes
	seen map[uint64]bool
}

// checkTree returns an error if the pages of a bbolt file are no tree. A file that is
// missing, empty, or without a root that can be read is left to the library to judge.
func checkTree(path string) error {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	t := tree{file: file, size: info.Size(), page: int64(os.Getpagesize()), seen: map[uint64]bool{}}
	if root, ok := t.root(); ok {
		return t.walk(root)
	}
	return nil
}

// root is the page that the newer meta page begins with.
func (t *tree) root() (root uint64, ok bool) {
	newest := uint64(0)
	for k := range int64(2) {
		b := make([]byte, treeMetaSum+8)
		if _, err := t.file.ReadAt(b, k*t.page); err != nil || binary.LittleEndian.Uint32(b[16:]) != treeMagic {
			continue
		}
		sum := fnv.New64a()
		_, _ = sum.Write(b[treeHeader:treeMetaSum])
		if sum.Sum64() != binary.LittleEndian.Uint64(b[treeMetaSum:]) {
			continue
		}
		t.page = int64(binary.LittleEndian.Uint32(b[24:]))
		if txid := binary.LittleEndian.Uint64(b[64:]); !ok || txid > newest {
			root, newest, ok = binary.LittleEndian.Uint64(b[32:]), txid, true
		}
	}
	return root, ok
}

// walk visits a page and all that it leads to, each once.
func (t *tree) walk(id uint64) error {
	if t.seen[id] {
		return fmt.Errorf("page %d is in the tree twice", id)
	}
	t.seen[id] = true
	b, err := t.read(id)
	if err != nil {
		return err
	}
	flags, count := binary.LittleEndian.Uint16(b[8:]), int(binary.LittleEndian.Uint16(b[10:]))
	if flags != treeBranch && flags != treeLeaf || treeHeader*(1+count) > len(b) {
		return fmt.Errorf("page %d is none of a tree, or too short", id)
	}
	for k := range count {
		e := b[treeHeader*(1+k):]
		next := binary.LittleEndian.Uint64(e[8:])
		if flags == treeLeaf {
			if next, err = bucketIn(e); err != nil {
				return fmt.Errorf("page %d: %w", id, err)
			}
		}
		if next != 0 || flags == treeBranch {
			if err := t.walk(next); err != nil {
				return err
			}
		}
	}
	return nil
}

// read returns a page with those that it flows over into.
func (t *tree) read(id uint64) ([]byte, error) {
	head := make([]byte, treeHeader)
	pages := uint64(t.size / t.page)
	if id >= pages {
		return nil, fmt.Errorf("page %d is beyond the file's %d", id, pages)
	}
	if _, err := t.file.ReadAt(head, int64(id)*t.page); err != nil {
		return nil, err
	}
	over := uint64(binary.LittleEndian.Uint32(head[12:]))
	if binary.LittleEndian.Uint64(head) != id || id+over >= pages {
		return nil, fmt.Errorf("page %d says that it is another, or longer than the file", id)
	}
	b := make([]byte, int64(1+over)*t.page)
	_, err := t.file.ReadAt(b, int64(id)*t.page)
	return b, err
}

// bucketIn is the page of the bucket that a leaf's element holds; 0: it holds none, or
// one without pages of its own.
func bucketIn(e []byte) (uint64, error) {
	if binary.LittleEndian.Uint32(e)&treeBucket == 0 {
		return 0, nil
	}
	at := uint64(binary.LittleEndian.Uint32(e[4:])) + uint64(binary.LittleEndian.Uint32(e[8:]))
	if at+treeHeader > uint64(len(e)) {
		return 0, errors.New("a bucket lies beyond it")
	}
	return binary.LittleEndian.Uint64(e[at:]), nil
}
