package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

const day = 24 * time.Hour

// certified returns a site whose user alice has credentials for 90 days. The argument `ago` is the age of the
// credentials.
func certified(t *testing.T, ago time.Duration) (s *clienttest.Site, authority *identity.Authority, file string) {
	t.Helper()
	s = newSite(t)
	s.Now = time.Now().Add(ago)
	authority, err := identity.Create(filepath.Join(s.Dir, "keys"), "west")
	if err != nil {
		t.Fatal(err)
	}
	creds, err := authority.Issue(identity.User, "alice")
	if err != nil {
		t.Fatal(err)
	}
	s.Write("state/creds/alice.creds", string(creds))
	clienttest.Submissions(s)
	s.In = "date"
	return s, authority, filepath.Join(s.Dir, "state/creds/alice.creds")
}

func endOf(t *testing.T, file string) time.Time {
	t.Helper()
	p, err := bus.ReadPrincipal(file)
	if err != nil {
		t.Fatal(err)
	}
	_, expires, err := identity.Validity(p.Token)
	if err != nil {
		t.Fatal(err)
	}
	return expires
}

// In the last third of their validity, credentials must be replaced. Only the user may be able to read the new file.
func TestCredentialsAreRenewedByTheClient(t *testing.T) {
	for ago, renewed := range map[time.Duration]bool{59 * day: false, 61 * day: true} {
		s, authority, file := certified(t, ago)
		clienttest.Answer(s, messages.Admission, messages.VerbRenew, func(r messages.RenewRequest) (reply messages.RenewReply, err error) {
			reply.Claim, err = authority.Renew("alice", r.Claim)
			return reply, err
		})
		authority.SetLife(300 * day)
		before := endOf(t, file)
		if r := s.Run("submit", "-b", "1"); r.Code != 0 || r.Err != "" {
			t.Errorf("%+v", r)
		}
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 || endOf(t, file).After(before.Add(200*day)) != renewed {
			t.Errorf("after %v: good until %v, was %v: %v %v", ago, endOf(t, file), before, info.Mode(), err)
		}
	}
}

// If the renewal fails, the credentials must still be used, and the user is told.
func TestCredentialsThatCannotBeRenewed(t *testing.T) {
	s, _, _ := certified(t, 89*day)
	clienttest.Refuse[messages.RenewRequest](s, messages.Admission, messages.VerbRenew, messages.Errorf(messages.PermissionDenied, "no"))
	s.Run("submit", "-b", "1").Expect(t, 0, "17", "could not be renewed")
}

func TestExpiredCredentials(t *testing.T) {
	s, _, _ := certified(t, 91*day)
	s.Run("submit", "-b", "1").Expect(t, 4, "", "candor user add alice")
	if len(s.Callers) != 0 {
		t.Errorf("asked as %v", s.Callers)
	}
}

// A file of credentials can be copied under any name, because the account is named inside. An error must name the file
// or the account that is wrong.
func TestTheCredentialsSayWhoseTheyAre(t *testing.T) {
	s, _, file := certified(t, 0)
	copied, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s.Write("bob.creds", string(copied))
	s.Write("note.txt", "hello")
	for line, want := range map[string]string{
		"--creds " + s.Path("bob.creds"):                                  "",
		"--creds " + s.Path("bob.creds") + " --account bob":               "bob.creds are those of alice, and do not let you speak as bob: leave out --account",
		"--creds " + s.Path("nothing") + " --server nats://h:1 --site w":  "there is no file or directory " + s.Path("nothing"),
		"--creds " + s.Path("note.txt") + " --server nats://h:1 --site w": "note.txt: is no credentials file",
	} {
		r := s.Run(append(strings.Fields(line), "submit", "-b", "1")...)
		if want == "" && (r.Code != 0 || s.Callers[len(s.Callers)-1] != "alice") || !strings.Contains(r.Err, want) {
			t.Errorf("%s: as %v, %+v, want %q", line, s.Callers, r, want)
		}
	}
}
