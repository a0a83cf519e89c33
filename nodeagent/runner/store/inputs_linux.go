package store

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path"
	"syscall"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner/access"
)

// PlaceInputs copies a stage's inputs into a task's fresh working directory. It makes no links, because a task may
// change its inputs.
func (s *Store) PlaceInputs(p *agent.Program, dir string, as *syscall.Credential) error {
	if p.Dir != "" {
		return messages.Errorf(messages.Invalid, "files of a job need a working directory that only the task uses, not %s", p.Dir)
	}
	root, err := OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range p.Inputs {
		if err := placeInput(root, &f, InputFile(s.config.Dir, f.Digest), as); err != nil {
			return messages.Errorf(messages.Unavailable, "%s: %s", f.Name, messages.Detail(err))
		}
	}
	return nil
}

// placeInput copies one input. A damaged file is removed, and fetched again for the next attempt.
func placeInput(root *os.Root, f *jobmsg.File, from string, as *syscall.Credential) error {
	source, err := os.Open(from)
	if err != nil {
		return messages.Errorf(messages.NotFound, "is not on this node: %v", err)
	}
	defer source.Close()
	if err := makeParents(root, path.Dir(f.Name), as); err != nil {
		return err
	}
	mode := os.FileMode(access.PrivateFiles)
	if f.Executable {
		mode = access.PrivateDirs
	}
	digest, err := copyInto(root, f.Name, mode, source, as)
	if err == nil && digest != f.Digest {
		os.Remove(from)
		err = messages.Errorf(messages.Internal, "is damaged on this node: its SHA-256 is %s, not %s", digest, f.Digest)
	}
	return err
}

// copyInto makes a file for a task and returns the digest of its content. It allows no fork meanwhile: a forked child
// could keep the file open for writing, and then the file could not be executed (see package program).
func copyInto(root *os.Root, name string, mode os.FileMode, from io.Reader, as *syscall.Credential) (digest string, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	to, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(to, sum), from)
	if err == nil && as != nil {
		err = to.Chown(int(as.Uid), int(as.Gid))
	}
	if closing := to.Close(); err == nil {
		err = closing
	}
	return hex.EncodeToString(sum.Sum(nil)), err
}

func makeParents(root *os.Root, dir string, as *syscall.Credential) error {
	if dir == "." {
		return nil
	}
	if err := makeParents(root, path.Dir(dir), as); err != nil {
		return err
	}
	err := root.Mkdir(dir, access.PrivateDirs)
	if os.IsExist(err) {
		return nil
	}
	if err == nil && as != nil {
		err = root.Lchown(dir, int(as.Uid), int(as.Gid))
	}
	return err
}
