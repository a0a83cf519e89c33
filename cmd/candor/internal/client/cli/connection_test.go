package cli_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/accounts"
	"github.com/candor-grid/candor/cmd/candor/internal/client/books"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobs"
	"github.com/candor-grid/candor/cmd/candor/internal/client/submit"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/deploy/identity/certificate"
	"github.com/candor-grid/candor/deploy/identity/natsserver"
	"github.com/candor-grid/candor/deploy/identity/natstest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
)

func newSite(t *testing.T) *clienttest.Site {
	return clienttest.New(t, jobs.Commands, submit.Commands, func(a *cli.App) []*cobra.Command {
		return append(accounts.Commands(a, submit.PredictCommand), books.Command(a))
	})
}

func TestConnection(t *testing.T) {
	for name, c := range map[string]struct {
		env   map[string]string
		args  []string
		as    messages.Name
		creds string
	}{
		"as the site's default account":     {nil, []string{"books"}, "alice", "state/creds/alice.creds"},
		"as another of the site":            {nil, []string{"books", "--account", "bob"}, "bob", ""},
		"by the environment":                {map[string]string{"CANDOR_ACCOUNT": "carol"}, []string{"books"}, "carol", ""},
		"a flag wins":                       {map[string]string{"CANDOR_ACCOUNT": "carol"}, []string{"books", "--account", "bob"}, "bob", ""},
		"by the name of the credentials":    {nil, []string{"books", "--creds", "x/dave.creds"}, "dave", "x/dave.creds"},
		"an operator's command":             {nil, []string{"grant", "bob", "1", "--yes"}, "operator", "state/creds/operator.creds"},
		"an operator's view":                {nil, []string{"account", "--all"}, "operator", "state/creds/operator.creds"},
		"an operator's command as another":  {nil, []string{"grant", "bob", "1", "--yes", "--account", "alice"}, "alice", "state/creds/alice.creds"},
		"another site":                      {nil, []string{"books", "--server", "nats://else:1", "--site", "west", "--account", "erin"}, "erin", ""},
		"another site, by the environment":  {map[string]string{"CANDOR_SERVER": "nats://else:1", "CANDOR_SITE": "west", "CANDOR_CREDS": "erin.creds"}, []string{"books"}, "erin", "erin.creds"},
		"the site of this machine, by name": {nil, []string{"books", "--server", "nats://127.0.0.1:4222"}, "alice", "state/creds/alice.creds"},
		"the default state directory":       {map[string]string{"CANDOR_STATE": "", "XDG_STATE_HOME": "xdg"}, []string{"books"}, "zoe", ""},
		"the default of the default":        {map[string]string{"CANDOR_STATE": "", "HOME": "home"}, []string{"books"}, "yann", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := clienttest.AnswerAll(newSite(t))
			s.Write("state/creds/alice.creds", "")
			s.Write("state/creds/operator.creds", "")
			s.Write("xdg/candor/site.json", `{"site":"west","server":"nats://h:1","default_account":"zoe"}`)
			s.Write("home/.local/state/candor/site.json", `{"site":"west","server":"nats://h:1","default_account":"yann"}`)
			for k, v := range c.env {
				if k == "HOME" || k == "XDG_STATE_HOME" {
					v = s.Path(v)
				}
				s.Env[k] = v
			}
			s.Run(c.args...).Expect(t, cli.CodeOK, "", "")
			if len(s.Callers) != 1 || s.Callers[0] != c.as {
				t.Errorf("asked as %v, want %s", s.Callers, c.as)
			}
			if got := strings.TrimPrefix(s.Last.Creds, s.Dir+"/"); got != c.creds {
				t.Errorf("credentials %q, want %q", got, c.creds)
			}
		})
	}
}

func TestWithoutASite(t *testing.T) {
	s := newSite(t)
	s.Env["CANDOR_STATE"] = s.Path("nothing")
	s.Run("jobs").Expect(t, cli.CodeUnavailable, "", "start a site with candor up, or name the server of a site with --server (Unavailable)\n")
	s.Write("nothing/site.json", "{")
	s.Run("jobs").Expect(t, cli.CodeUsage, "", "restart the site with candor up")
}

func natsServer(t *testing.T, options server.Options) string {
	t.Helper()
	options.Host, options.Port, options.NoLog, options.NoSigs = "127.0.0.1", server.RANDOM_PORT, true, true
	return natstest.Run(t, &options).ClientURL()
}

// overNATS returns a site whose users connect to a NATS server that site.json names.
func overNATS(t *testing.T, url string) *clienttest.Site {
	s := newSite(t)
	s.NATS = true
	s.Write("state/site.json", fmt.Sprintf(`{"site":"west","server":%q,"default_account":"alice"}`, url))
	return s
}

func TestOverNATS(t *testing.T) {
	url := natsServer(t, server.Options{})
	s := overNATS(t, url)
	conn, err := bus.Connect(bus.Config{URL: url, Name: "$auctioneer"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s.Conn = conn
	clienttest.Submissions(s)
	clienttest.Progressing(s, job.JobSummary{State: job.Running}, job.JobSummary{State: job.Failed, ExitCode: 9})
	s.In = "date"
	s.Run("submit", "-b", "1", "--wait").Expect(t, 9, "Submitted job 17", "Job 17: Running")
	if s.Callers[0] != "alice" {
		t.Errorf("asked as %q", s.Callers[0])
	}
}

// The error must name the site that the server serves, and the flag --at.
func TestASiteThatTheServerDoesNotServe(t *testing.T) {
	s := newSite(t)
	s.Write("state/site.json", `{"site":"west","server":"nats://127.0.0.1:1","default_account":"alice"}`)
	s.Run("jobs", "--site", "east").Expect(t, cli.CodeNotFound, "", `nats://127.0.0.1:1 is site west, not "east": choose another site of this machine with --at`)
}

func TestASiteThatRefusesOrDoesNotAnswer(t *testing.T) {
	refusing := overNATS(t, natsServer(t, server.Options{Authorization: "secret"}))
	refusing.Run("jobs").Expect(t, cli.CodeDenied, "", "does not accept account alice: give its credentials with --creds")
	overNATS(t, "nats://127.0.0.1:1").Run("jobs").Expect(t, cli.CodeUnavailable, "", "site west does not answer at nats://127.0.0.1:1: start the site with candor up, or name another server with --server (cannot connect")
	silent := overNATS(t, natsServer(t, server.Options{}))
	silent.Run("jobs", "--timeout", "100ms").Expect(t, cli.CodeUnavailable, "", "(Unavailable)\n")
	silent.Run("jobs", "--ca", silent.Path("none.pem")).Expect(t, cli.CodeUsage, "", "--ca: there is no file or directory ")
	silent.Write("bad.pem", "x")
	silent.Run("jobs", "--ca", silent.Path("bad.pem")).Expect(t, cli.CodeUsage, "", "holds no certificate in PEM")
	silent.Run("jobs", "--creds", silent.Path("alice.creds")).Expect(t, cli.CodeUsage, "", "credentials")
}

// A client trusts another authority than the one that signed the site's certificate. The error must say that the
// certificate is not accepted, not that the site does not answer.
func TestAWrongAuthorityIsNoSiteThatIsAway(t *testing.T) {
	own, other, now := t.TempDir(), t.TempDir(), time.Now()
	authority, err := certificate.Create(own, "west", now)
	if err == nil {
		err = authority.Issue("localhost", []string{"127.0.0.1"}, now)
	}
	if err == nil {
		_, err = certificate.Create(other, "west", now)
	}
	pair, err2 := tls.LoadX509KeyPair(filepath.Join(own, "localhost.pem"), filepath.Join(own, "localhost.key"))
	if err = errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	url := natsServer(t, server.Options{TLS: true, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}})
	s := overNATS(t, url)
	s.Run("jobs", "--ca", filepath.Join(other, "ca.pem")).Expect(t, cli.CodeUnavailable, "", "the certificate of "+url+" is not accepted: give the site's authority with --ca")
	s.Run("jobs", "--timeout", "100ms", "--ca", filepath.Join(own, "ca.pem")).Expect(t, cli.CodeUnavailable, "", "no actor serves")
}

// The error about an expired certificate must say who can issue a new one, and not ask for other flags.
func TestAnExpiredCertificate(t *testing.T) {
	dir, long := t.TempDir(), time.Now().AddDate(-3, 0, 0)
	authority, err := certificate.Create(dir, "west", long)
	if err == nil {
		err = authority.Issue("localhost", []string{"127.0.0.1"}, long)
	}
	pair, err2 := tls.LoadX509KeyPair(filepath.Join(dir, "localhost.pem"), filepath.Join(dir, "localhost.key"))
	if err = errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	url := natsServer(t, server.Options{TLS: true, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}})
	overNATS(t, url).Run("jobs", "--ca", filepath.Join(dir, "ca.pem")).Expect(t, cli.CodeUnavailable, "", "the certificate of "+url+" is not valid now: check the clock of this machine; if it is right, ask an operator of site west")
}

// An error about unreadable credentials names the file, and does not say that the site does not answer.
func TestCredentialsThatCannotBeRead(t *testing.T) {
	authority, err := identity.Create(filepath.Join(t.TempDir(), "keys"), "west")
	if err != nil {
		t.Fatal(err)
	}
	o := server.Options{}
	if err := natsserver.Secure(&o, authority); err != nil {
		t.Fatal(err)
	}
	s := overNATS(t, natsServer(t, o))
	s.Write("alice.creds", "x")
	s.Run("jobs", "--creds", s.Path("alice.creds")).Expect(t, cli.CodeUsage, "", "alice.creds: is no credentials file; \"candor user add\" makes such a file (nkeys: no nkey seed found) (Invalid)")
}

func TestAt(t *testing.T) {
	s := newSite(t)
	s.Write("state/sites/east/site.json", `{"site":"east","server":"nats://127.0.0.1:4223","default_account":"carol"}`)
	s.Write("state/sites/east/creds/carol.creds", "x")
	clienttest.ServeAt(s, messages.Subject("east", messages.Auctioneer, messages.VerbJobs, "*"), messages.VerbJobs, func(job.JobsRequest) (job.JobsReply, error) { return job.JobsReply{}, nil })
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJobs, func(job.JobsRequest) (job.JobsReply, error) { return job.JobsReply{}, nil })
	check := func(want cli.Target, args ...string) {
		t.Helper()
		s.Run(args...).Expect(t, cli.CodeOK, "", "")
		if s.Last.Site != want.Site || s.Last.Server != want.Server || s.Last.Account != want.Account || s.Last.Creds != want.Creds {
			t.Errorf("%v: connects to %+v", args, s.Last)
		}
	}
	west := cli.Target{Site: "west", Server: "nats://127.0.0.1:4222", Account: "alice"}
	east := cli.Target{Site: "east", Server: "nats://127.0.0.1:4223", Account: "carol", Creds: s.Path("state/sites/east/creds/carol.creds")}
	check(west, "jobs")
	check(west, "--at", "west", "jobs")
	check(east, "--at", "east", "jobs")
	s.Env["CANDOR_AT"] = "east"
	check(east, "jobs")
	check(west, "jobs", "--at", "west")
	s.Run("--at", "south", "jobs").Expect(t, cli.CodeNotFound, "", "no site south is known here (there is west, east)")
	s.Run("--at", "South!", "jobs").Expect(t, cli.CodeUsage, "", "is not a name")
}
