package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/deploy/identity/certificate"
	"github.com/candor-grid/candor/deploy/identity/natsserver"
	"github.com/candor-grid/candor/deploy/identity/natstest"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
)

// natsServer starts a NATS server on loopback.
func natsServer(t *testing.T, options server.Options) string {
	t.Helper()
	options.Host, options.Port, options.NoLog, options.NoSigs = "127.0.0.1", server.RANDOM_PORT, true, true
	return natstest.Run(t, &options).ClientURL()
}

// overNATS returns a site whose users connect to a NATS server. The address of the server is in site.json.
func overNATS(t *testing.T, url string) *fakeSite {
	s := newSite(t)
	s.nats = true
	s.write("state/site.json", fmt.Sprintf(`{"site":"west","server":%q,"default_account":"alice"}`, url))
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
	s.conn = conn
	submissions(s)
	progressing(s, job.JobSummary{State: job.Running}, job.JobSummary{State: job.Failed, ExitCode: 9})
	s.in = "date"
	s.run("submit", "-b", "1", "--wait").expect(t, 9, "Submitted job 17", "Job 17: Running")
	if s.callers[0] != "alice" {
		t.Errorf("asked as %q", s.callers[0])
	}
}

// TestASiteThatTheServerDoesNotServe names a site that the server does not serve. The error must name the server's site
// and the flag --at.
func TestASiteThatTheServerDoesNotServe(t *testing.T) {
	s := newSite(t)
	s.write("state/site.json", `{"site":"west","server":"nats://127.0.0.1:1","default_account":"alice"}`)
	s.run("jobs", "--site", "east").expect(t, cli.CodeNotFound, "", `nats://127.0.0.1:1 is site west, not "east": choose another site of this machine with --at`)
}

func TestASiteThatRefusesOrDoesNotAnswer(t *testing.T) {
	refusing := overNATS(t, natsServer(t, server.Options{Authorization: "secret"}))
	refusing.run("jobs").expect(t, cli.CodeDenied, "", "does not accept account alice: give its credentials with --creds")
	overNATS(t, "nats://127.0.0.1:1").run("jobs").expect(t, cli.CodeUnavailable, "", "site west does not answer at nats://127.0.0.1:1: start it with candor up, or name another with --server (cannot connect")
	silent := overNATS(t, natsServer(t, server.Options{}))
	silent.run("jobs", "--timeout", "100ms").expect(t, cli.CodeUnavailable, "", "(Unavailable)\n")
	silent.run("jobs", "--ca", silent.path("none.pem")).expect(t, cli.CodeUsage, "", "--ca: there is no file or directory ")
	silent.write("bad.pem", "x")
	silent.run("jobs", "--ca", silent.path("bad.pem")).expect(t, cli.CodeUsage, "", "holds no certificate in PEM")
	silent.run("jobs", "--creds", silent.path("alice.creds")).expect(t, cli.CodeUsage, "", "credentials")
}

// TestAWrongAuthorityIsNoSiteThatIsAway connects with a wrong certificate authority. The error must say that the
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
	s.run("jobs", "--ca", filepath.Join(other, "ca.pem")).expect(t, cli.CodeUnavailable, "", "the certificate of "+url+" is not accepted: give the site's authority with --ca")
	s.run("jobs", "--timeout", "100ms", "--ca", filepath.Join(own, "ca.pem")).expect(t, cli.CodeUnavailable, "", "no actor serves")
}

// TestCredentialsThatCannotBeRead checks that an error about unreadable credentials names the file, and does not say
// that the site does not answer.
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
	s.write("alice.creds", "x")
	s.run("jobs", "--creds", s.path("alice.creds")).expect(t, cli.CodeUsage, "", "alice.creds: is no credentials file; candor user add makes one (nkeys: no nkey seed found) (Invalid)")
}
