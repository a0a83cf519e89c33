package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
)

func internalOf(t *testing.T, site messages.Name, secret byte) *Internal {
	t.Helper()
	i, err := NewInternal(site, [32]byte{secret})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func as(c *tls.Config, name string) *tls.Config {
	c = c.Clone()
	c.ServerName = name
	return c
}

// Hosts with the same keys must derive the same authority. Other keys, or another site, must give another authority.
func TestHostsWithTheSameKeysKnowOneAnother(t *testing.T) {
	one, two := internalOf(t, "west", 1), internalOf(t, "west", 1)
	server := one.Replica("bank", "rack1")
	if err := shake(server, as(two.Replica("bank", "rack2"), "rack1.bank.west.candor")); err != nil {
		t.Errorf("two hosts of a site: %v", err)
	}
	if err := shake(server, as(two.Replica("bank", "rack2"), "rack3.bank.west.candor")); err == nil {
		t.Error("rack1 passes for rack3")
	}
	for who, other := range map[string]*Internal{"other keys": internalOf(t, "west", 2), "another site": internalOf(t, "east", 1)} {
		client := as(other.Replica("bank", "rack2"), "rack1.bank.west.candor")
		client.InsecureSkipVerify = true
		if err := shake(server, client); err == nil {
			t.Errorf("%s: let in", who)
		}
	}
	if err := shake(one.Server("rack1"), two.Server("rack2")); err != nil {
		t.Errorf("two NATS servers: %v", err)
	}
	if err := shake(one.Server("rack1"), as(two.Replica("bank", "rack2"), serverPart+".west.candor")); err == nil {
		t.Error("a replica passes for a NATS server")
	}
}

// A process that runs for years must always have a valid certificate, even if its clock was set back.
func TestInternalCertificatesAreRenewed(t *testing.T) {
	now := time.Now()
	r := &renewed{authority: internalOf(t, "west", 1), names: []string{"rack1.bank.west.candor"}, now: func() time.Time { return now }}
	ends := func() time.Time {
		cert, err := r.get()
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(cert.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		if now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
			t.Errorf("at %v: good from %v to %v", now, leaf.NotBefore, leaf.NotAfter)
		}
		return leaf.NotAfter
	}
	first := ends()
	now = now.Add(InternalHours * time.Hour / 3)
	if again := ends(); !again.Equal(first) {
		t.Error("it is made anew each time")
	}
	for range 5 {
		now = now.Add(InternalHours * time.Hour / 3)
		ends()
	}
	now = now.Add(-1000 * time.Hour)
	ends()
}

// The certificate must be valid only for this replica, and only its owner may read the file.
func TestCertificateOfAReplicaAlone(t *testing.T) {
	i := internalOf(t, "west", 1)
	file := filepath.Join(t.TempDir(), "rack2-bank.pem")
	if err := i.WriteReplica(file, "bank", "rack2", time.Now()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	c, err := ReadReplica(file, "bank", "rack2", "west")
	if err != nil {
		t.Fatal(err)
	}
	if err := shake(i.Replica("bank", "rack1"), as(c, "rack1.bank.west.candor")); err != nil {
		t.Errorf("as a client: %v", err)
	}
	if err := shake(c, as(i.Replica("bank", "rack1"), "rack2.bank.west.candor")); err != nil {
		t.Errorf("as a server: %v", err)
	}
	for _, other := range [][3]messages.Name{{"auctioneer", "rack2", "west"}, {"bank", "rack1", "west"}, {"bank", "rack2", "east"}} {
		if _, err := ReadReplica(file, other[0], other[1], other[2]); messages.KindOf(err) != messages.Invalid {
			t.Errorf("for %v: %v", other, err)
		}
	}
	if err := i.WriteReplica(file, "bank", "../x", time.Now()); messages.KindOf(err) != messages.Invalid {
		t.Errorf("a host that is none: %v", err)
	}
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadReplica(file, "bank", "rack2", "west"); messages.KindOf(err) != messages.Invalid {
		t.Errorf("no certificate: %v", err)
	}
}
