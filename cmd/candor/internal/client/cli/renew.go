package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/nats-io/jwt/v2"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/durable"
)

// renewWithin is the longest time that a command waits for the renewal of its credentials.
const renewWithin = 2 * time.Second

// validity returns when credentials were issued and when they expire. It returns zero times in two cases: the file
// cannot be read, or the credentials come from a door (a program that gives users of this machine credentials). If the
// credentials have expired or belong to another account, it returns an error that says what to do.
func (a *App) validity(t *Target) (issued, expires time.Time, err error) {
	if t.door != "" {
		return issued, expires, nil
	}
	p, err := bus.ReadPrincipal(t.Creds)
	if err != nil {
		return issued, expires, nil
	}
	if holder, err := identity.AccountOf(p.Token); err == nil && holder != t.Account {
		return issued, expires, messages.Errorf(messages.PermissionDenied,
			"the credentials in %s are those of %s, and do not let you speak as %s: leave out --account and CANDOR_ACCOUNT, or name other credentials with --creds; a project that pays for jobs is named with --project",
			t.Creds, holder, t.Account)
	}
	t.held = &p
	if issued, expires, err = identity.Validity(p.Token); err != nil || expires.IsZero() || a.Now().Before(expires) {
		return issued, expires, nil
	}
	return issued, expires, messages.Errorf(messages.PermissionDenied,
		"the credentials of %s in %s expired on %s: if the clock of this machine is right, ask an operator of site %s for new ones (candor user add %s)",
		t.Account, t.Creds, expires.In(a.Zone).Format(time.DateOnly), t.Site, t.Account)
}

// renew replaces credentials if less than a third of their validity is left. A failure does not stop the command.
func (a *App) renew(t Target, b bus.Bus, issued, expires time.Time) {
	if !identity.Due(issued, expires, a.Now()) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), min(renewWithin, a.Flags.timeout))
	defer cancel()
	if err := renewFile(ctx, t, b); err != nil {
		a.Tell(fmt.Sprintf("The credentials in %s expire on %s and could not be renewed: %v",
			t.Creds, expires.In(a.Zone).Format(time.DateOnly), err))
	}
}

func renewFile(ctx context.Context, t Target, b bus.Bus) error {
	p, err := bus.ReadPrincipal(t.Creds)
	if err != nil {
		return err
	}
	reply, err := bus.Call[messages.RenewReply](ctx, b, messages.Subject(t.Site, messages.Admission, messages.VerbRenew, t.Account),
		messages.RenewRequest{Claim: p.Token})
	if err != nil {
		return err
	}
	creds, err := jwt.FormatUserConfig(reply.Claim, []byte(p.Seed))
	if err != nil {
		return messages.Errorf(messages.Invalid, "the site's answer: %v", err)
	}
	return replaceSecret(t.Creds, creds)
}

// replaceSecret replaces a file with a new one that only the file's owner can read.
func replaceSecret(path string, data []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	return durable.Replace(path, 0o600, func(f *os.File) error {
		_, err := f.Write(data)
		return errors.Join(err, sameOwner(path, f))
	})
}

// sameOwner gives a file the owner of another file. Only the super-user may do this.
func sameOwner(of string, f *os.File) error {
	info, err := os.Stat(of)
	if err != nil {
		return err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() {
		return f.Chown(int(s.Uid), int(s.Gid))
	}
	return nil
}
