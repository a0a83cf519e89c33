package door

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"sync"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

const (
	// mostLines is the largest number of open connections; each account has at most one. A connection that was not used
	// for the time lineRests is closed.
	mostLines = 256
	lineRests = 3 * time.Minute
)

// lines are the open connections to the site, one for each account that used the door recently.
type lines struct {
	connect func(cli.Target) (bus.Bus, error)

	mu   sync.Mutex
	open map[messages.Name]*line
}

// line is the connection of one account to the site. It uses only the account's credentials, never the door's
// credentials. So the site refuses all requests that the account may not send.
type line struct {
	loan    cli.Loan
	connect func() (bus.Bus, error) // connects only once; all callers belong to one user

	// The fields below are guarded by lines.mu.
	users   int  // number of requests that use the connection now
	retired bool // the connection has left lines.open, and is closed after its last user
	rest    *time.Timer
}

// take returns the connection for a loan of credentials. If there are already mostLines connections, it returns nil. If
// the account's connection has an earlier loan, take replaces the connection, because the earlier loan expires sooner.
func (l *lines) take(loan cli.Loan) *line {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.open[loan.Account]
	if n != nil && n.loan.Claim != loan.Claim {
		l.retire(n)
		n = nil
	}
	if n == nil {
		if len(l.open) >= mostLines {
			return nil
		}
		n = &line{loan: loan, connect: sync.OnceValues(func() (bus.Bus, error) { return l.connect(loan.Target()) })}
		n.rest = time.AfterFunc(lineRests, func() { l.drop(n) })
		l.open[loan.Account] = n
	}
	n.users++
	return n
}

// leave ends one use of a connection. A broken connection is not used again.
func (l *lines) leave(n *line, broken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n.users--; broken || n.retired {
		l.retire(n)
	} else {
		n.rest.Reset(lineRests)
	}
}

func (l *lines) drop(n *line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retire(n)
}

func (l *lines) retire(n *line) {
	if l.open[n.loan.Account] == n {
		delete(l.open, n.loan.Account)
	}
	n.rest.Stop()
	n.retired = true
	if n.users == 0 {
		go func() { // closing a connection may take seconds
			if b, err := n.connect(); err == nil {
				_ = b.Close()
			}
		}()
	}
}

func (d *door) carry(ctx context.Context, loan cli.Loan, r *cli.Relayed) cli.RelayAnswer {
	n := d.lines.take(loan)
	if n == nil {
		return cli.RelayAnswer{Direct: true}
	}
	b, err := n.connect()
	if err != nil {
		d.lines.leave(n, true)
		if messages.KindOf(err) == messages.PermissionDenied {
			d.forget(loan)
		}
		return cli.RelayAnswer{Direct: true} // the command connects to the site by itself, and the site tells it why the request failed
	}
	ctx, cancel := context.WithTimeout(ctx, min(max(r.Within.Std(), 0), answersWithin))
	defer cancel()
	reply, err := b.Request(ctx, r.Subject, r.Payload)
	if err == nil {
		d.lines.leave(n, false)
		return cli.RelayAnswer{Reply: reply}
	}
	kind := messages.KindOf(err)
	revoked := kind == messages.PermissionDenied && bus.Unserved(err)
	if revoked {
		d.forget(loan)
	}
	d.lines.leave(n, revoked || kind == messages.Unavailable || kind == messages.Unknown || kind == messages.Exhausted)
	return cli.RelayAnswer{Error: messages.AsError("", err), Direct: bus.Unserved(err)}
}

func (d *door) forget(loan cli.Loan) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.loans[loan.Account].Claim == loan.Claim {
		delete(d.loans, loan.Account)
	}
}

// The door lends a user's credentials to the user. This loan is the argument `loan`. relay then carries the user's
// requests to the site.
func (d *door) relay(ctx context.Context, c *net.UnixConn, loan cli.Loan) {
	ended := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer ended()
	bounded := &io.LimitedReader{R: c}
	requests := json.NewDecoder(bounded)
	for range cli.RelayRequests {
		bounded.N = cli.RelayBytes
		_ = c.SetDeadline(time.Now().Add(cli.RelayRest))
		var r cli.Relayed
		if err := requests.Decode(&r); err != nil {
			return
		}
		a := d.carry(ctx, loan, &r)
		_ = c.SetDeadline(time.Now().Add(answersWithin))
		if err := json.NewEncoder(c).Encode(&a); err != nil {
			return
		}
	}
}
