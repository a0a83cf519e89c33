package door

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nkeys"
	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

const (
	// leastUser is the smallest user number of a person. Smaller numbers belong to services.
	leastUser = 1000
	// keepsFor is how long the door gives the same credentials to an account's user. The site lends them for an hour, so
	// they are then valid for three quarters of an hour at least. The door counts from when it got them, and does not look
	// at the time at which they expire: the clock of this machine may differ from the clocks of the site.
	keepsFor = 15 * time.Minute
	// answersWithin is the longest time of an answer. At most mostAtOnce connections, and mostOfUser of one user, can
	// wait for credentials at the same time. The same limits hold for connections that carry requests.
	answersWithin = 10 * time.Second
	mostAtOnce    = 64
	mostOfUser    = 8
	nameLasts     = time.Minute // how long the name of a user number is remembered
)

type door struct {
	bus     bus.Bus
	name    messages.Name // name of the door's own credentials
	site    messages.Name
	server  string
	ca      string // certificates of the authority, in PEM format
	least   uint32 // smaller user numbers are refused
	now     func() time.Time
	say     func(text string)
	answers places // the connections that wait for credentials
	relays  places // the connections that carry requests
	lines   lines

	mu    sync.Mutex
	names map[uint32]named
	loans map[messages.Name]loan
}

// loan is credentials of an account, and when the door got them.
type loan struct {
	cli.Loan
	at time.Time
}

// fresh reports whether the door may still give the credentials to a user. If the clock was set back, it may not.
func (l *loan) fresh(now time.Time) bool {
	age := now.Round(0).Sub(l.at.Round(0)) // Round(0) makes the age grow also while the machine is suspended
	return age >= 0 && age < keepsFor
}

// named is the name of a user number, and when it was looked up.
type named struct {
	name string
	at   time.Time
}

func (d *door) serve(ctx context.Context, l *net.UnixListener) error {
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	d.names, d.loans = map[uint32]named{}, map[messages.Name]loan{}
	d.lines.open = map[messages.Name]*line{}
	var answers sync.WaitGroup
	defer answers.Wait()
	for {
		c, err := l.AcceptUnix()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			d.say(fmt.Sprintf("cannot answer a user: %v", err))
			time.Sleep(50 * time.Millisecond) // wait a little: the cause may be too many open files
			continue
		}
		uid, err := peerOf(c)
		if err != nil || !d.answers.take(uid) {
			_ = c.Close()
			continue
		}
		answers.Go(func() {
			defer c.Close()
			d.answer(ctx, c, uid)
		})
	}
}

// places counts the open connections of one kind.
type places struct {
	mu  sync.Mutex
	all int
	of  map[uint32]int // number of open connections, by user number
}

// take reserves a place for a connection of a user. It returns false if no place is free, or if the user already has
// mostOfUser places: one user must not take all places.
func (p *places) take(uid uint32) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all >= mostAtOnce || p.of[uid] >= mostOfUser {
		return false
	}
	if p.of == nil {
		p.of = map[uint32]int{}
	}
	p.all++
	p.of[uid]++
	return true
}

func (p *places) leave(uid uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.of[uid]--; p.of[uid] == 0 {
		delete(p.of, uid)
	}
}

// peerOf returns the user number of the process at the other end of a connection. The number comes from the kernel.
func peerOf(c *net.UnixConn) (uid uint32, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		var u *unix.Ucred
		if u, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); failed == nil {
			uid = u.Uid
		}
	})
	return uid, errors.Join(err, failed)
}

func (d *door) answer(ctx context.Context, c *net.UnixConn, uid uint32) {
	l, relays := d.greet(ctx, c, uid)
	if relays {
		defer d.relays.leave(uid)
		d.relay(ctx, c, l)
	}
}

// greet gives a user credentials. The result `relays` says whether the user may send requests on the same connection.
func (d *door) greet(ctx context.Context, c *net.UnixConn, uid uint32) (l cli.Loan, relays bool) {
	defer d.answers.leave(uid)
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	_ = c.SetDeadline(time.Now().Add(answersWithin + time.Second))
	l, err := d.lend(ctx, uid)
	if err != nil {
		l = cli.Loan{Refused: messages.Detail(err)}
	} else {
		l.Relays = d.relays.take(uid)
	}
	_ = json.NewEncoder(c).Encode(l) // an error means that the user has gone away, and needs no answer
	return l, l.Relays
}

// lend returns the credentials of the account with a user's name.
func (d *door) lend(ctx context.Context, uid uint32) (cli.Loan, error) {
	if uid < d.least {
		return cli.Loan{}, messages.Errorf(messages.PermissionDenied, "user number %d is a service of this machine, and the door serves only users with numbers from %d on: name a server and credentials with --server and --creds", uid, d.least)
	}
	account, err := d.userName(ctx, uid)
	if err != nil {
		return cli.Loan{}, err
	}
	if !messages.ValidName(account) {
		return cli.Loan{}, messages.Errorf(messages.Invalid, "your user name %q cannot be an account: an account has lower-case letters, digits, - and _; ask an operator for credentials", account)
	}
	d.mu.Lock()
	kept, known := d.loans[account]
	d.mu.Unlock()
	if known && kept.fresh(d.now()) {
		return kept.Loan, nil
	}
	l, err := d.ask(ctx, account)
	if err != nil {
		return l, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	for name, old := range d.loans {
		if !old.fresh(now) {
			delete(d.loans, name)
		}
	}
	d.loans[account] = loan{l, now}
	return l, nil
}

func (d *door) ask(ctx context.Context, account messages.Name) (l cli.Loan, err error) {
	box, err := nkeys.CreateCurveKeys()
	if err != nil {
		return l, err
	}
	public, err := box.PublicKey()
	if err != nil {
		return l, err
	}
	reply, err := bus.Call[messages.LendReply](ctx, d.bus, messages.Subject(d.site, messages.Admission, messages.VerbLend, d.name),
		messages.LendRequest{Account: account, Box: public})
	if messages.KindOf(err) == messages.PermissionDenied && bus.Unserved(err) {
		err = messages.Errorf(messages.PermissionDenied, "the site does not accept the credentials of this machine's door: an administrator must make new credentials with \"candor user add %s --door\", and start the door with them", strings.TrimPrefix(d.name, messages.ServiceIdentity(messages.DoorPrefix)))
		d.say(messages.Detail(err))
	}
	if err != nil {
		return l, err
	}
	seed, err := box.Open(reply.Seed, reply.Sender)
	if err != nil {
		return l, messages.Errorf(messages.Internal, "the site's answer cannot be decrypted: %v", err)
	}
	return cli.Loan{Server: d.server, Site: d.site, CA: d.ca, Account: account, Claim: reply.Claim, Seed: string(seed), Expires: reply.Expires}, nil
}

// userName returns the name of a user number. It asks getent, which also knows the users of directory services.
func (d *door) userName(ctx context.Context, uid uint32) (string, error) {
	d.mu.Lock()
	known := d.names[uid]
	d.mu.Unlock()
	if d.now().Sub(known.at) < nameLasts {
		return known.name, nil
	}
	number := strconv.FormatUint(uint64(uid), 10)
	name := ""
	line, err := exec.CommandContext(ctx, "getent", "passwd", number).Output()
	if f := strings.Split(strings.TrimSpace(string(line)), ":"); err == nil && len(f) == 7 && f[2] == number {
		name = f[0]
	} else if u, err := user.LookupId(number); err == nil {
		name = u.Username
	}
	if name == "" {
		return "", messages.Errorf(messages.NotFound, "this machine knows no user with the number %d", uid)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.names) > 10_000 {
		clear(d.names)
	}
	d.names[uid] = named{name, d.now()}
	return name, nil
}

// listen makes the socket. Every user may connect to it. listen replaces a socket file that a door process left when it
// ended. It does not replace a socket at which a door still answers.
func listen(path string) (*net.UnixListener, error) {
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(c, 1))
		_ = c.Close()
		return nil, messages.Errorf(messages.Conflict, "--socket: another door already serves %s: name another path", path)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket == 0 {
		return nil, messages.Errorf(messages.Conflict, "--socket: %s exists and is not a socket: name another path", path)
	}
	if dir := filepath.Dir(path); os.MkdirAll(filepath.Dir(dir), 0o755) == nil && os.Mkdir(dir, 0o755) == nil {
		_ = os.Chmod(dir, 0o755) // every user must reach the socket, whatever the umask
	}
	_ = os.Remove(path)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, messages.Errorf(messages.Invalid, "--socket: %v", err)
	}
	return l, os.Chmod(path, 0o666)
}
