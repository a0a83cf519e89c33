package proxy

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/durable"
)

// Variable is the variable of a task's environment that holds its token.
const Variable = "CANDOR_PROXY"

// Key makes the tokens of a node. Only the agent and its executor may have it.
type Key []byte

const keySize = 32

// Open reads the key of a node from its directory, or makes a key.
func Open(dir string) (Key, error) {
	path := filepath.Join(dir, "proxy.key")
	key, err := os.ReadFile(path)
	if err == nil && len(key) == keySize {
		return key, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	key = make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, err
	}
	return key, durable.WriteFile(path, key, 0o600)
}

func (k Key) hash(text string) string {
	h := hmac.New(sha256.New, k)
	h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil))[:32]
}

// socket returns the name of the node's socket. Every process of the machine can see it.
func (k Key) socket() string { return "@candor-" + k.hash("socket") }

// Value returns the value of [Variable] for an attempt of an account: the socket, the user of the agent, the account,
// the attempt and its token.
func (k Key) Value(account messages.Name, a messages.Attempt) string {
	return fmt.Sprintf("%s:%d:%s:%s:%s", k.socket(), os.Getuid(), account, nameOf(a), k.hash(nameOf(a)))
}

// Account returns the account that a value of [Variable] names. A task could change this name. So the site does not use
// it, but takes the account from its own record of the attempt.
func Account(value string) (messages.Name, error) {
	parts, err := split(value)
	if err != nil {
		return "", err
	}
	return parts[2], nil
}

// A task gets a value in the environment variable that the constant Variable names. split returns the five parts of
// this value. Colons separate the parts.
func split(value string) (parts [5]string, err error) {
	if n := copy(parts[:], strings.SplitN(value, ":", 6)); n != 5 || !strings.HasPrefix(parts[0], "@") || strings.Count(value, ":") != 4 {
		err = messages.Errorf(messages.Invalid, "%s was changed: a task must keep the value that the node set", Variable)
	}
	return parts, err
}

func nameOf(a messages.Attempt) string {
	return fmt.Sprintf("%d.%d.%d.%d", a.Task.Job, a.Task.Stage, a.Task.Index, a.Number)
}

// attempt returns the attempt that a token proves, or nil if the token is not from this node.
func (k Key) attempt(name, token string) *messages.Attempt {
	if !hmac.Equal([]byte(k.hash(name)), []byte(token)) {
		return nil
	}
	var numbers [4]uint64
	for i, part := range strings.SplitN(name, ".", 4) {
		n, err := strconv.ParseUint(part, 10, 64)
		if err != nil {
			return nil
		}
		numbers[i] = n
	}
	return &messages.Attempt{Task: messages.TaskRef{Job: messages.JobID(numbers[0]), Stage: uint32(numbers[1]), Index: uint32(numbers[2])}, Number: uint32(numbers[3])}
}
