package stream

import (
	"bufio"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
)

// Every process of the machine can listen at a port of the machine's network. A process of another account may take a
// port before the task does, or as soon as the task gives the port up. But a connection that the node makes for a
// task's owner must only reach a process of that task.

// Listener is a socket in a table of /proc/net.
type Listener struct {
	uid   uint32
	inode uint64
}

// These are the positions of columns in /proc/net/tcp, and two values of the column for the state of a connection.
const (
	localColumn, remoteColumn, stateColumn, uidColumn, inodeColumn = 1, 2, 3, 7, 9

	established, listening = "01", "0A"
)

// everywhere and loopback are the addresses 0.0.0.0 and 127.0.0.1, and the same addresses of IPv6, as /proc/net/tcp and
// tcp6 show them on little-endian machines.
var (
	everywhere = map[int]string{unix.AF_INET: "00000000", unix.AF_INET6: strings.Repeat("0", 32)}
	loopback   = map[int]string{unix.AF_INET: "0100007F", unix.AF_INET6: strings.Repeat("0", 24) + "01000000"}
	mapped     = strings.Repeat("0", 16) + "FFFF0000" + "0100007F" // 127.0.0.1 in tcp6
)

// listenersAt returns the sockets that a connection to a port of the loopback would reach.
func listenersAt(family, port int) []Listener {
	at := portText(port)
	found := sockets(family, listening, func(local, _ string) bool {
		return local == everywhere[family]+at || local == loopback[family]+at
	})
	if len(found) == 0 && family == unix.AF_INET {
		found = sockets(unix.AF_INET6, listening, func(local, _ string) bool {
			return local == everywhere[unix.AF_INET6]+at || local == mapped+at
		})
	}
	return found
}

func portText(port int) string {
	text := strings.ToUpper(strconv.FormatInt(int64(port), 16))
	return ":" + strings.Repeat("0", 4-len(text)) + text
}

// The kernel has a table of TCP sockets. The function `sockets` returns the rows with the state `state` that the
// function `wanted` accepts. Reading is fast although there may be many other sockets, because the table lists
// listening sockets first.
func sockets(family int, state string, wanted func(local, remote string) bool) (found []Listener) {
	table := "/proc/thread-self/net/tcp"
	if family == unix.AF_INET6 {
		table += "6"
	}
	file, err := os.Open(table)
	if err != nil {
		return nil
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Scan() // the header line
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) <= inodeColumn || state == listening && fields[stateColumn] != listening {
			break
		}
		if fields[stateColumn] != state || !wanted(fields[localColumn], fields[remoteColumn]) {
			continue
		}
		uid, _ := strconv.ParseUint(fields[uidColumn], 10, 32)
		inode, err := strconv.ParseUint(fields[inodeColumn], 10, 64)
		if err == nil {
			found = append(found, Listener{uint32(uid), inode})
		}
	}
	return found
}

// errForeign is the error for a port at which another process listens.
var errForeign = messages.Errorf(messages.PermissionDenied, "a process outside the task listens at the port")

// listens returns the listeners at a port, or an error if there is none, or if one does not belong to the task.
func listens(t Dialled, family, port int) ([]Listener, error) {
	found := listenersAt(family, port)
	if len(found) == 0 {
		return nil, unix.ECONNREFUSED
	}
	return found, t.Owns(found)
}

// OwnedBy returns an error if one of the sockets belongs neither to the user `as` nor to one of the given processes. If
// `as` is nil, each socket must belong to one of the processes.
func OwnedBy(sockets []Listener, as *syscall.Credential, processes []int) error {
	for _, s := range sockets {
		own := as != nil && s.uid == as.Uid
		if !own && !slices.ContainsFunc(processes, func(pid int) bool { return hasSocket(pid, s.inode) }) {
			return errForeign
		}
	}
	return nil
}

func hasSocket(pid int, inode uint64) bool {
	dir, want := "/proc/"+strconv.Itoa(pid)+"/fd", "socket:["+strconv.FormatUint(inode, 10)+"]"
	open, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer open.Close()
	names, _ := open.Readdirnames(-1)
	return slices.ContainsFunc(names, func(name string) bool {
		target, _ := os.Readlink(dir + "/" + name)
		return target == want
	})
}

// reached returns nil only if a process of the task must have accepted the connection. This is so if the processes that
// listen are the same as before the connection. A server that accepts only one connection no longer listens then. In
// this case the other end of the connection must belong to a process of the task.
func reached(t Dialled, socket int, family, port int, before []Listener) error {
	if slices.Equal(listenersAt(family, port), before) {
		return nil
	}
	own, err := unix.Getsockname(socket)
	if err != nil {
		return err
	}
	var mine string
	var ends []string // both ends of the connection, as the tables show them
	switch a := own.(type) {
	case *unix.SockaddrInet4:
		mine, ends = portText(a.Port), []string{loopback[unix.AF_INET], mapped}
	case *unix.SockaddrInet6:
		mine, ends = portText(a.Port), []string{loopback[unix.AF_INET6]}
	}
	var taken []Listener
	for _, table := range []int{unix.AF_INET, unix.AF_INET6} {
		taken = append(taken, sockets(table, established, func(local, remote string) bool {
			return slices.ContainsFunc(ends, func(end string) bool { return local == end+portText(port) && remote == end+mine })
		})...)
	}
	if len(taken) == 0 {
		return unix.ECONNREFUSED
	}
	return t.Owns(taken)
}
