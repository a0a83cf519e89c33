package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// connection holds the flags that every command has.
type connection struct {
	server, site, account, creds, state, ca, at string
	timeout                                     time.Duration
	json, noColor                               bool
	// destination is the site that a job is for, which --site then names: where no
	// other is known, it is the one to connect to as well.
	destination messages.Name
}

func (a *app) connectionFlags(f *pflag.FlagSet) {
	f.StringVar(&a.flags.server, "server", "", "`URL` of the site's NATS server (CANDOR_SERVER)")
	f.StringVar(&a.flags.site, "site", "", "`name` of the site (CANDOR_SITE)")
	f.StringVar(&a.flags.account, "account", "", "`account` to speak as (CANDOR_ACCOUNT)")
	f.StringVar(&a.flags.creds, "creds", "", "NATS credentials `file` of the account (CANDOR_CREDS)")
	f.StringVar(&a.flags.ca, "ca", "", "PEM `file` of the authority that vouches for the server, with TLS (CANDOR_CA)")
	f.StringVar(&a.flags.state, "state", "", "state `directory` of candor up (CANDOR_STATE)")
	f.StringVar(&a.flags.at, "at", "", "`name` of a site of this machine, where candor up runs several (CANDOR_AT)")
	f.DurationVar(&a.flags.timeout, "timeout", bus.RequestTimeout, "how `long` to wait for an answer")
	f.BoolVar(&a.flags.json, "json", false, "print the site's reply as JSON")
	f.BoolVar(&a.flags.noColor, "no-color", false, "no colours (NO_COLOR)")
}

// target says where to connect, and as whom.
type target struct {
	server        string
	site, account messages.Name
	creds         string // file; "" for none
	ca            string // file; "" for none
}

// siteFile is what "candor up" leaves in its state directory as site.json.
// Beside it, creds/<account>.creds holds each account's credentials.
type siteFile struct {
	Site           messages.Name `json:"site"`
	Server         string        `json:"server"`
	DefaultAccount messages.Name `json:"default_account"`
	CA             string        `json:"ca"` // PEM file that vouches for the server; "" without TLS
	// TaskUsers is the range of users of which each account has one on this machine,
	// and UsersFile says which.
	TaskUsers string `json:"task_users"`
	UsersFile string `json:"users_file"`
}

// operatorAccount is the operator of a site that is configured with no other.
const operatorAccount = "operator"

// stateDir is the state directory of the site on this machine.
func (a *app) stateDir() string {
	if dir := first(a.flags.state, a.getenv("CANDOR_STATE")); dir != "" {
		return dir
	}
	if dir := a.getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "candor")
	}
	return filepath.Join(a.getenv("HOME"), ".local", "state", "candor")
}

// readSiteFile reads site.json; the zero value if there is none.
func readSiteFile(state string) (site siteFile, err error) {
	path := filepath.Join(state, "site.json")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return siteFile{}, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &site)
	}
	if err != nil {
		return siteFile{}, messages.Errorf(messages.Invalid, "%s: %v: restart the site with candor up, or name one with --server", path, err)
	}
	return site, nil
}

// resolve decides where to connect: flags win over the environment, and that
// over what "candor up" left. What only operators may do is done as the local
// site's operator, where the user has that one's credentials and names no
// account.
func (a *app) resolve(asOperator bool) (target, error) {
	state, local, err := a.localSite()
	if err != nil {
		return target{}, err
	}
	t := target{
		server: first(a.flags.server, a.getenv("CANDOR_SERVER"), local.Server),
		site:   first(a.flags.site, a.getenv("CANDOR_SITE")),
		creds:  first(a.flags.creds, a.getenv("CANDOR_CREDS")),
		ca:     first(a.flags.ca, a.getenv("CANDOR_CA")),
	}
	t.account = first(a.flags.account, a.getenv("CANDOR_ACCOUNT"), accountOf(t.creds))
	if t.server == "" {
		return t, messages.Errorf(messages.Unavailable,
			"no site is known here (no site.json in %s): start one with candor up, or name one with --server", state)
	}
	if t.server == local.Server {
		if asOperator && t.account == "" && localCreds(state, operatorAccount) != "" {
			t.account = operatorAccount
		}
		t.site, t.account, t.ca = first(t.site, local.Site), first(t.account, local.DefaultAccount), first(t.ca, local.CA)
		t.creds = first(t.creds, localCreds(state, t.account))
	}
	if t.site == "" && a.flags.destination != messages.AnySite {
		t.site = a.flags.destination
	}
	return t, t.check()
}

// check refuses what could not stand in a subject.
func (t target) check() error {
	switch {
	case t.site == "":
		return usagef("--site: missing: name the site that %s serves", t.server)
	case t.account == "":
		return usagef("--account: missing: name the account to speak as, or its credentials with --creds")
	case !messages.ValidName(t.site):
		return usagef("--site %q: is not a name: use lower-case letters, digits, - and _", t.site)
	case !messages.ValidName(t.account):
		return usagef("--account %q: is not a name: use lower-case letters, digits, - and _", t.account)
	}
	return nil
}

// accountOf is the account that a credentials file is named after.
func accountOf(creds string) messages.Name {
	name, ok := strings.CutSuffix(filepath.Base(creds), ".creds")
	if !ok || !messages.ValidName(name) {
		return ""
	}
	return name
}

// localCreds is the file with an account's credentials, "" if there is none.
func localCreds(state string, account messages.Name) string {
	path := filepath.Join(state, "creds", account+".creds")
	if _, err := os.Stat(path); err != nil || !messages.ValidName(account) {
		return ""
	}
	return path
}

// first returns the first that is not empty.
func first(candidates ...string) string {
	for _, c := range candidates {
		if c != "" {
			return c
		}
	}
	return ""
}

// session is a connection to a site on behalf of an account.
type session struct {
	bus           bus.Bus
	site, account messages.Name
	timeout       time.Duration
	pause         func(context.Context, time.Duration) error
}

// dial connects to the site.
func (a *app) dial(asOperator bool) (*session, error) {
	if err := runner.NoDumps(); err != nil { // credentials are read next
		return nil, err
	}
	t, err := a.resolve(asOperator)
	if err != nil {
		return nil, err
	}
	if a.flags.timeout <= 0 {
		return nil, usagef("--timeout %v: must be above 0, like 10s", a.flags.timeout)
	}
	b, err := a.connect(t)
	if err != nil {
		return nil, unreachable(t, err)
	}
	return &session{bus: b, site: t.site, account: t.account, timeout: a.flags.timeout, pause: a.pause}, nil
}

func connectNATS(t target) (bus.Bus, error) {
	c := bus.Config{URL: t.server, Name: t.account, CredsFile: t.creds}
	if t.ca != "" {
		pem, err := os.ReadFile(t.ca)
		if err != nil {
			return nil, messages.Errorf(messages.Invalid, "--ca: %v", err)
		}
		c.TLS = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
		if !c.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return nil, messages.Errorf(messages.Invalid, "--ca: %s: holds no certificate in PEM", t.ca)
		}
	}
	return bus.Connect(c)
}

// unreachable says what to do about a connection that was not made.
func unreachable(t target, err error) error {
	cause := messages.AsError("", err).Message
	switch messages.KindOf(err) {
	case messages.PermissionDenied:
		return messages.Errorf(messages.PermissionDenied,
			"site %s at %s does not accept account %s: give its credentials with --creds (%s)", t.site, t.server, t.account, cause)
	case messages.Invalid:
		return err
	}
	return messages.Errorf(messages.Unavailable,
		"site %s does not answer at %s: start it with candor up, or name another with --server (%s)", t.site, t.server, cause)
}

// callKeyed is call for a request with a key: where the outcome is not known,
// the same request is sent again, and gets the answer of the first.
func callKeyed[Reply any](ctx context.Context, s *session, actor, verb string, request any) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for {
		reply, err := bus.Call[Reply](ctx, s.bus, messages.Subject(s.site, actor, verb, s.account), request)
		if err == nil || messages.KindOf(err) != messages.Unknown || s.pause(ctx, firstPause) != nil {
			return reply, err
		}
	}
}

// call asks an actor of the site, and asks again while its leader is away,
// until the time-out.
func call[Reply any](ctx context.Context, s *session, actor, verb string, request any) (Reply, error) {
	return callAt[Reply](ctx, s, messages.Subject(s.site, actor, verb, s.account), request)
}

func callAt[Reply any](ctx context.Context, s *session, subject string, request any) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return bus.Call[Reply](ctx, s.bus, subject, request)
}
