package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/durable"
	"github.com/candor-grid/candor/messages/proof"
)

type connection struct {
	server, Site, account, creds, state, ca, at string
	timeout                                     time.Duration
	JSON, noColor                               bool
	form                                        string   // wide, name or json; "" for the usual one
	columns                                     []string // columns of tables; "" means all
	// Destination is the site that must run the job. The flag --site has two meanings. In some commands, it sets
	// Destination. In all other commands, it names the site to connect to. If nothing names a site to connect to, a
	// command with a Destination connects to that site.
	Destination messages.Name
}

// ConnectionFlags declares the flags about the connection, which every client command has.
func (a *App) ConnectionFlags(f *pflag.FlagSet) {
	f.StringVar(&a.Flags.server, "server", "", "`URL` of the site's NATS server, or several with commas between them (CANDOR_SERVER)")
	f.StringVar(&a.Flags.Site, "site", "", "`name` of the site (CANDOR_SITE)")
	f.StringVar(&a.Flags.account, "account", "", "`account` to speak as (CANDOR_ACCOUNT); --project names who pays")
	f.StringVar(&a.Flags.creds, "creds", "", "NATS credentials `file` of the account (CANDOR_CREDS)")
	f.StringVar(&a.Flags.ca, "ca", "", "PEM `file` with the authority of the server's certificate, for TLS (CANDOR_CA)")
	f.StringVar(&a.Flags.state, "state", "", "state `directory` of candor up (CANDOR_STATE)")
	f.StringVar(&a.Flags.at, "at", "", "`name` of a site on this machine, if candor up runs several (CANDOR_AT)")
	f.DurationVar(&a.Flags.timeout, "timeout", bus.RequestTimeout, "`time` to wait for an answer")
	f.BoolVar(&a.Flags.JSON, "json", false, "print the site's reply as JSON")
	f.BoolVar(&a.Flags.noColor, "no-color", false, "no colours (NO_COLOR)")
}

// Target says where to connect, and with which account.
type Target struct {
	Server        string
	Site, Account messages.Name
	Creds         string           // file; "" for none
	held          *proof.Principal // content of the credentials file; nil means there is none, or it cannot be read
	ca            string           // file; "" for none
	authority     string           // PEM, from a door, if there is no file; "" for none
	door          string           // socket of the door that gave held and gives the next ones; "" means they are from the file
	got           time.Time        // when this process got the credentials in held, if a door gave them
	relay         *relay           // connection to the door, for the first requests; nil means the door takes none
}

// siteFile is the file site.json in the state directory. The credentials of an account are in creds/<account>.creds
// there.
type siteFile struct {
	Site           messages.Name `json:"site"`
	Server         string        `json:"server"`
	DefaultAccount messages.Name `json:"default_account"`
	CA             string        `json:"ca"` // PEM file that verifies the server's certificate; "" without TLS
	// JobSite is the site that runs a job if the job names no site. "" means this site.
	JobSite messages.Name `json:"job_site"`
	// Console is the address of the console for browsers. WebSocket is the address that its pages connect to. "" means
	// that the site has no console.
	Console   string `json:"console"`
	WebSocket string `json:"websocket"`
	// TaskUsers is a range of system users for tasks on this machine, one for each account. The file UsersFile has the
	// user of each account.
	TaskUsers string `json:"task_users"`
	UsersFile string `json:"users_file"`
	// Hidden are the directories of this machine that tasks cannot see.
	Hidden []string `json:"hidden"`
}

// operatorAccount is the operator's account if the configuration names no other.
const operatorAccount = "operator"

// StateDir returns the state directory of the site on this machine.
func (a *App) StateDir() string {
	if dir := cmp.Or(a.Flags.state, a.Getenv("CANDOR_STATE")); dir != "" {
		return dir
	}
	return DefaultState(a.Getenv)
}

// DefaultState returns the state directory to use if none is named. Site and users compute the same directory. It is
// never where other users can write, such as /tmp, and never the working directory.
func DefaultState(getenv func(string) string) string {
	if dir := getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "candor")
	}
	home := getenv("HOME")
	if home == "" {
		if u, err := user.Current(); err == nil {
			home = u.HomeDir
		}
	}
	return filepath.Join("/", home, ".local", "state", "candor")
}

func (a *App) siteFile(state string) (site siteFile, err error) {
	if site, known := a.sites[state]; known {
		return site, nil
	}
	if site, err = readSiteFile(state); err == nil && site.Site != "" {
		if a.sites == nil {
			a.sites = map[string]siteFile{}
		}
		a.sites[state] = site
	}
	return site, err
}

// readSiteFile reads site.json. Without a file it returns the zero value.
func readSiteFile(state string) (site siteFile, err error) {
	path := filepath.Join(state, "site.json")
	if err := durable.ReadJSON(path, &site); err != nil {
		return siteFile{}, messages.Errorf(messages.Invalid, "%s: %v: restart the site with candor up, or name the server of a site with --server", path, err)
	}
	return site, nil
}

// Resolve decides where to connect. It takes a value from the flags, or else from the environment, or else from the
// file of "candor up". If this file does not exist, [MachineFile] has the values, and a door of the machine has the
// credentials. At the site of this machine, a command for operators needs an account from a flag or the environment.
func (a *App) Resolve(asOperator bool) (Target, error) {
	state, local, err := a.LocalSite()
	if err != nil {
		return Target{}, err
	}
	t := Target{
		Server: cmp.Or(a.Flags.server, a.Getenv("CANDOR_SERVER"), local.Server),
		Site:   cmp.Or(a.Flags.Site, a.Getenv("CANDOR_SITE")),
		Creds:  cmp.Or(a.Flags.creds, a.Getenv("CANDOR_CREDS")),
		ca:     cmp.Or(a.Flags.ca, a.Getenv("CANDOR_CA")),
	}
	if t.Account = cmp.Or(a.Flags.account, a.Getenv("CANDOR_ACCOUNT")); t.Account == "" && t.Creds != "" {
		if t.Account, err = accountOf(t.Creds); err != nil {
			return t, err
		}
	}
	if local.Server == "" {
		if err := a.ofMachine(&t); err != nil {
			return t, err
		}
	}
	if t.Server == "" {
		return t, messages.Errorf(messages.Unavailable,
			"no site is known here (no site.json in %s): if candor up was just started here, wait until it says that the site is up; otherwise start a site with candor up, or name the server of a site with --server", state)
	}
	if t.Server == local.Server {
		if messages.ValidName(t.Site) && local.Site != "" && t.Site != local.Site {
			return t, messages.Errorf(messages.NotFound, "--site: %s is site %s, not %q: choose another site of this machine with --at, or a site on another machine with --server; --site can name a peer only in the commands submit, run, shell, quote and estimate",
				t.Server, local.Site, t.Site)
		}
		if asOperator && t.Account == "" {
			return t, Usagef("this command is for operators: repeat the command with --account %s, or set CANDOR_ACCOUNT", operatorAccount)
		}
		t.Site, t.Account, t.ca = cmp.Or(t.Site, local.Site), cmp.Or(t.Account, local.DefaultAccount), cmp.Or(t.ca, local.CA)
		t.Creds = cmp.Or(t.Creds, localCreds(state, t.Account))
	}
	if t.Site == "" && a.Flags.Destination != clearing.AnySite {
		t.Site = a.Flags.Destination
	}
	return t, t.check()
}

// ResolveDoor decides where a door connects. The caller sets the account of the target from the door's credentials.
func (a *App) ResolveDoor() (Target, error) {
	t := Target{
		Server: cmp.Or(a.Flags.server, a.Getenv("CANDOR_SERVER")), Site: cmp.Or(a.Flags.Site, a.Getenv("CANDOR_SITE")),
		Creds: cmp.Or(a.Flags.creds, a.Getenv("CANDOR_CREDS")), ca: cmp.Or(a.Flags.ca, a.Getenv("CANDOR_CA")),
	}
	for flag, value := range map[string]string{"server": t.Server, "site": t.Site, "creds": t.Creds} {
		if value == "" {
			return t, Usagef("--%s: missing: \"candor door\" needs --server, --site and --creds (\"candor user add --door\" makes the credentials)", flag)
		}
	}
	return t, nil
}

// Authority returns the certificates, as PEM, that verify the server's certificate, or "".
func (t *Target) Authority() (string, error) {
	if t.ca == "" {
		return t.authority, nil
	}
	pem, err := os.ReadFile(t.ca)
	if err != nil {
		return "", messages.Errorf(messages.Invalid, "--ca: %v", err)
	}
	return string(pem), nil
}

// check refuses values that cannot be part of a NATS subject.
func (t Target) check() error {
	switch {
	case t.Site == "":
		return Usagef("--site: missing: name the site that %s serves: \"candor up\" prints the name when the site starts, and site.json in the state directory has the name; or ask the operator", t.Server)
	case t.Account == "":
		return Usagef("--account: missing: name the account to speak as, or its credentials with --creds")
	case !messages.ValidName(t.Site):
		return Usagef("--site %q: is not a name: use lower-case letters, digits, - and _", t.Site)
	case !messages.ValidName(t.Account):
		return Usagef("--account %q: is not a name: use lower-case letters, digits, - and _", t.Account)
	}
	return nil
}

// accountOf returns the account in a credentials file. If the file cannot be read, the file's name can tell the account.
func accountOf(creds string) (messages.Name, error) {
	p, err := bus.ReadPrincipal(creds)
	if err == nil {
		return identity.AccountOf(p.Token)
	}
	if name, ok := strings.CutSuffix(filepath.Base(creds), ".creds"); ok && messages.ValidName(name) {
		return name, nil
	}
	return "", err
}

// localCreds returns the path of an account's credentials file, or "".
func localCreds(state string, account messages.Name) string {
	path := filepath.Join(state, "creds", account+".creds")
	if _, err := os.Stat(path); err != nil || !messages.ValidName(account) {
		return ""
	}
	return path
}

// Session is a connection to a site on behalf of an account.
type Session struct {
	Bus           bus.Bus
	Site, Account messages.Name
	Timeout       time.Duration
	Lent          bool // a door or a node gave the credentials; they are never an operator's credentials
}

func (a *App) Dial(asOperator bool) (*Session, error) {
	if s, err := a.throughNode(); s != nil || err != nil {
		return s, err
	}
	t, err := a.Resolve(asOperator)
	if err != nil {
		return nil, err
	}
	if a.Flags.timeout <= 0 {
		return nil, Usagef("--timeout %v: must be above 0, like 10s", a.Flags.timeout)
	}
	issued, expires, err := a.validity(&t)
	if err != nil {
		return nil, err
	}
	connect := func() (bus.Bus, error) {
		b, err := a.Connect(t)
		if messages.KindOf(err) == messages.PermissionDenied && t.door != "" {
			b, err = a.connectAnew(t, err)
		}
		if err != nil {
			return nil, unreachable(t, err)
		}
		return b, nil
	}
	var b bus.Bus = &relayBus{connect: connect, door: t.relay}
	if t.relay == nil {
		if b, err = connect(); err != nil {
			return nil, err
		}
		a.renew(t, b, issued, expires)
	}
	a.relay = nil // no other session may use this connection
	return &Session{Bus: b, Site: t.Site, Account: t.Account, Timeout: a.Flags.timeout, Lent: t.door != ""}, nil
}

// connectAnew asks the door again for credentials, because the site refused the credentials of t: after a revocation
// the door has new credentials. If the door gives the same credentials again, connectAnew returns the error `refused`.
func (a *App) connectAnew(t Target, refused error) (bus.Bus, error) {
	l, r, err := borrow(t.door)
	if r != nil {
		_ = r.conn.Close()
	}
	if err != nil {
		return nil, err
	}
	if l.Claim == t.held.Token || l.Account != t.Account {
		return nil, refused
	}
	t.held, t.got = l.Target().held, l.got
	return a.Connect(t)
}

// ConnectNATS connects to a site over NATS.
func ConnectNATS(t Target) (bus.Bus, error) {
	c := bus.Config{URL: t.Server, Name: t.Account, CredsFile: t.Creds, Personal: true}
	if t.held != nil {
		c.CredsFile, c.Renew = "", t.principal()
	}
	pem, err := t.Authority()
	if err != nil {
		return nil, err
	}
	if pem != "" {
		c.TLS = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
		if !c.TLS.RootCAs.AppendCertsFromPEM([]byte(pem)) {
			return nil, messages.Errorf(messages.Invalid, "--ca: %s: holds no certificate in PEM", t.ca)
		}
	}
	return bus.Connect(c)
}

// principal returns a function that gives the credentials for each new connection. After the first call it reads the
// file again, because the file may have been renewed. If a door gave the credentials, it asks the door again. If the door
// does not answer, it gives the last credentials, which may still be valid.
func (t *Target) principal() func() (token, seed string, err error) {
	var mu sync.Mutex
	last, first := t.held, true
	return func() (string, string, error) {
		mu.Lock()
		defer mu.Unlock()
		fresh := first && (t.door == "" || time.Since(t.got) < loanLasts)
		first = false
		switch {
		case fresh || t.door == "" && t.Creds == "": // a door has no other credentials for the connection of a user
		case t.door == "":
			p, err := bus.ReadPrincipal(t.Creds)
			return p.Token, p.Seed, err
		default:
			l, r, err := borrow(t.door)
			if r != nil {
				_ = r.conn.Close()
			}
			if err == nil {
				last = l.Target().held
			}
		}
		return last.Token, last.Seed, nil
	}
}

// unreachable returns an error that says what to do about a failed connection.
func unreachable(t Target, err error) error {
	cause := messages.Detail(err)
	if untrusted, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		if invalid, ok := errors.AsType[x509.CertificateInvalidError](untrusted.Err); ok && invalid.Reason == x509.Expired {
			return messages.Errorf(messages.Unavailable, "the certificate of %s is not valid now: check the clock of this machine; if it is right, ask an operator of site %s to issue a new certificate (candor site certify, or an authority of the site's own), and to start the host again (%s)", t.Server, t.Site, cause)
		}
		return messages.Errorf(messages.Unavailable, "the certificate of %s is not accepted: give the site's authority with --ca, such as its tls/ca.pem, and give in --server a name that is in the certificate (%s)", t.Server, cause)
	}
	switch messages.KindOf(err) {
	case messages.PermissionDenied:
		if t.Creds != "" {
			return messages.Errorf(messages.PermissionDenied, "site %s at %s does not accept the credentials of %s in %s: they were revoked, are no longer valid, or are for another site; ask an operator of the site for new ones (candor user add %[3]s)",
				t.Site, t.Server, t.Account, t.Creds)
		}
		if t.door != "" {
			return messages.Errorf(messages.PermissionDenied, "site %s at %s does not accept the credentials that the door of this machine gives to %s: an operator has revoked them, or those of the door (%s)",
				t.Site, t.Server, t.Account, cause)
		}
		return messages.Errorf(messages.PermissionDenied,
			"site %s at %s does not accept account %s: give its credentials with --creds (%s); a project that pays for jobs is named with --project", t.Site, t.Server, t.Account, cause)
	case messages.Invalid:
		return err
	}
	return messages.Errorf(messages.Unavailable,
		"site %s does not answer at %s: start the site with candor up, or name another server with --server (%s)", t.Site, t.Server, cause)
}

// Call sends a request to an actor of the site. It repeats the request while the actor has no leader or the outcome is
// unknown. The site carries out a request with a key only once.
func Call[Reply any](ctx context.Context, s *Session, actor, verb string, request any) (Reply, error) {
	return CallAt[Reply](ctx, s, messages.Subject(s.Site, actor, verb, s.Account), request)
}

// CallAt does the same as Call, but for any subject.
func CallAt[Reply any](ctx context.Context, s *Session, subject string, request any) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	return bus.Call[Reply](ctx, s.Bus, subject, request)
}

// MaxPage is the largest number of entries that the site gives in one reply.
const MaxPage = 1000

// sitesDir, in the first site's state directory, holds the state directories of further sites of the same process.
const sitesDir = "sites"

// LocalSite returns the site of this machine that --at names, or else the site of the state directory. If there is
// none, it returns the zero value.
func (a *App) LocalSite() (state string, site siteFile, err error) {
	state = a.StateDir()
	site, err = a.siteFile(state)
	at := cmp.Or(a.Flags.at, a.Getenv("CANDOR_AT"))
	if err != nil || at == "" || site.Site == at {
		return state, site, err
	}
	if !messages.ValidName(at) {
		return state, site, Usagef("--at %q: is not a name: use lower-case letters, digits, - and _", at)
	}
	below := filepath.Join(state, sitesDir, at)
	named, err := a.siteFile(below)
	if err == nil && named.Site == "" {
		return state, site, messages.Errorf(messages.NotFound, "--at: no site %s is known here%s: start the site with candor up --sites, or name the site's directory with --state", at, others(state, site))
	}
	return below, named, err
}

// JobSite returns the site that runs a job if the job names no site. "" means the user's own site.
func (a *App) JobSite() messages.Name {
	_, site, _ := a.LocalSite() // the command reports the error when it connects
	return cmp.Or(a.Getenv("CANDOR_JOB_SITE"), site.JobSite)
}

// The function `others` returns a hint for an error: the names of all sites of this machine, or "".
func others(state string, base siteFile) string {
	var names []string
	if base.Site != "" {
		names = append(names, base.Site)
	}
	entries, _ := os.ReadDir(filepath.Join(state, sitesDir)) // if the directory is missing, there is no hint
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if len(names) == 0 {
		return ""
	}
	return " (there is " + strings.Join(names, ", ") + ")"
}
