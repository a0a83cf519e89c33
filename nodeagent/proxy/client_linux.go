package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
)

// Request sends a request of a task to its site and returns the answer. The argument `value` is the value of
// [Variable].
func Request(ctx context.Context, value, verb string, request []byte) ([]byte, error) {
	parts, err := split(value)
	if err != nil {
		return nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", parts[0])
	if err != nil {
		return nil, messages.Errorf(messages.Unavailable, "the node's agent does not answer requests of tasks: %v", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if uid, err := userOf(conn); err != nil || uid != parts[1] && uid != overflow {
		return nil, messages.Errorf(messages.PermissionDenied, "another user's process answers in the place of the node's agent")
	}
	c := call{Attempt: parts[3], Token: parts[4], Verb: verb, Request: request}
	var a answer
	unsent := json.NewEncoder(conn).Encode(&c) // an agent that refuses a request answers without reading all of it
	if err = json.NewDecoder(io.LimitReader(conn, mostReplies)).Decode(&a); err != nil {
		err = cmp.Or(unsent, err)
	}
	switch {
	case err != nil:
		return nil, messages.Errorf(messages.Unknown, "the node's agent gave no answer: %v", err)
	case a.Error != nil:
		return nil, a.Error
	}
	return a.Reply, nil
}

// overflow is the number that the kernel shows for a user who has no number in the task's user namespace.
const overflow = "65534"

// userOf returns the number of the user at the other end of a connection.
func userOf(conn net.Conn) (uid string, err error) {
	peer, err := peerOf(conn)
	if err != nil {
		return "", err
	}
	return strconv.FormatUint(uint64(peer.Uid), 10), nil
}

// peerOf asks the kernel which process made the other end of a connection.
func peerOf(conn net.Conn) (peer *unix.Ucred, err error) {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	return peer, errors.Join(err, failed)
}
