package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/proof"
)

// MachineFile names the site to which commands on this machine connect by default. The variable CANDOR_CLIENT names
// another file.
const MachineFile = "/etc/candor/client.yaml"

type machine struct {
	Door   string        `yaml:"door"`   // socket of candor door, which gives each user of the machine credentials
	Server string        `yaml:"server"` // URL of the site's NATS server; "" means that the door names it
	Site   messages.Name `yaml:"site"`   // name of the site; "" means that the door names it
	CA     string        `yaml:"ca"`     // PEM file that verifies the server's certificate; "" means that the door gives it
}

// Loan is the answer of a door, the program that gives users of this machine credentials: the credentials of the user
// who asked, and the address of the site. Without credentials, Refused says why.
type Loan struct {
	Refused string        `json:"refused,omitempty"`
	Server  string        `json:"server,omitempty"`
	Site    messages.Name `json:"site,omitempty"`
	CA      string        `json:"ca,omitempty"` // PEM; "" without TLS
	Account messages.Name `json:"account,omitempty"`
	Claim   string        `json:"claim,omitempty"`
	Seed    string        `json:"seed,omitempty"`
	Expires messages.Time `json:"expires,omitempty"`
	// Relays means that the door forwards requests that are sent on the same connection, see [Relayed].
	Relays bool `json:"relays,omitempty"`

	got time.Time // when this process got the answer
}

// loanLasts is how long a command uses credentials from a door for new connections. When a door gives credentials, they
// are valid for longer. The command does not look at the time at which they expire, because the clock of this machine
// may be wrong.
const loanLasts = 30 * time.Minute

// Target returns where commands with these credentials connect.
func (l *Loan) Target() Target {
	return Target{Server: l.Server, Site: l.Site, Account: l.Account, authority: l.CA,
		held: &proof.Principal{Token: l.Claim, Seed: l.Seed}, got: l.got}
}

// readMachine reads the machine's file, or returns the zero value if the user cannot read it. On a host of the site,
// the directory may be closed to users, because it has the site's keys.
func (a *App) readMachine() (m machine, err error) {
	path := cmp.Or(a.Getenv("CANDOR_CLIENT"), MachineFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return m, nil
	}
	if err == nil {
		err = yaml.UnmarshalWithOptions(text, &m, yaml.Strict())
	}
	if err != nil {
		return m, messages.Errorf(messages.Invalid, "%s: %v: the fields of this file are door, server, site and ca", path, err)
	}
	return m, nil
}

// ofMachine fills in missing values from the machine's file. If the user gave neither a server nor credentials, it asks
// the door for credentials.
func (a *App) ofMachine(t *Target) error {
	m, err := a.readMachine()
	if err != nil {
		return err
	}
	named := t.Server
	t.Server, t.Site, t.ca = cmp.Or(t.Server, m.Server), cmp.Or(t.Site, m.Site), cmp.Or(t.ca, m.CA)
	if m.Door == "" || t.Creds != "" || named != "" {
		return nil
	}
	l, r, err := a.loanOf(m.Door)
	if err != nil {
		return err
	}
	if t.Account != "" && t.Account != l.Account {
		return messages.Errorf(messages.PermissionDenied, "--account %s: %s gives you the credentials of %s, your user name; to charge a project, use --project %s; for another account, name its credentials with --creds", t.Account, m.Door, l.Account, t.Account)
	}
	t.Server, t.Site, t.Account = cmp.Or(t.Server, l.Server), cmp.Or(t.Site, l.Site), l.Account
	lent := l.Target()
	t.held, t.got, t.authority, t.door, t.relay = lent.held, lent.got, lent.authority, m.Door, r
	return nil
}

// loanOf asks a door for the credentials of the process's user. A command asks again only if it runs for long. A door is
// a service on this machine that gives each user credentials.
func (a *App) loanOf(door string) (Loan, *relay, error) {
	if a.loan.Account != "" && time.Since(a.loan.got) < loanLasts {
		return a.loan, a.relay, nil
	}
	l, r, err := borrow(door)
	if err == nil {
		a.loan, a.relay = l, r
	}
	return l, r, err
}

const doorWithin = 15 * time.Second

// borrow asks a door (the process `candor door`) for the credentials of this process's user. The kernel tells the door
// which user asks. If the door also relays requests, the connection to it stays open.
func borrow(socket string) (l Loan, r *relay, err error) {
	c, err := net.DialTimeout("unix", socket, doorWithin)
	if err != nil {
		return l, nil, messages.Errorf(messages.Unavailable, "the door of this machine does not answer (%v): ask its administrator to start `candor door`, or name credentials with --server and --creds", err)
	}
	defer func() {
		if r == nil {
			_ = c.Close()
		}
	}()
	_ = c.SetDeadline(time.Now().Add(doorWithin))
	answers := json.NewDecoder(c)
	if err := answers.Decode(&l); err != nil {
		return l, nil, messages.Errorf(messages.Unavailable, "the door at %s gave no readable answer: %v; try again", socket, err)
	}
	if l.Refused != "" {
		return l, nil, messages.Errorf(messages.PermissionDenied, "%s", l.Refused)
	}
	l.got = time.Now()
	if l.Relays {
		r = &relay{conn: c, answers: answers, left: RelayRequests, used: time.Now()}
	}
	return l, r, nil
}
