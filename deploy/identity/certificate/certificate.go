package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/durable"
)

// These are the times for which certificates are valid. A certificate is valid from one day before it is made, because
// the clocks of hosts may differ.
const (
	AuthorityYears = 10
	HostDays       = 825 // the maximum that most software accepts
	early          = 24 * time.Hour
)

// These are the names of the authority's files.
const (
	CAFile    = "ca.pem"
	CAKeyFile = "ca.key"
)

// Authority signs the certificates of a site's hosts.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Create makes the authority of a site in a directory that has none.
func Create(dir string, site messages.Name, now time.Time) (*Authority, error) {
	if _, err := os.Stat(filepath.Join(dir, CAKeyFile)); !errors.Is(err, fs.ErrNotExist) {
		return nil, messages.Errorf(messages.Conflict, "%s: the directory already has an authority, which is never replaced; use another directory", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{Organization: []string{"Candor site " + site}, CommonName: "authority of " + site},
		IsCA:    true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage:  x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		NotBefore: now.Add(-early), NotAfter: now.AddDate(AuthorityYears, 0, 0),
	}
	a := &Authority{dir: dir, cert: template}
	var err error
	if a.key, err = newKey(); err != nil {
		return nil, err
	}
	if err := a.sign(template, a.key, "ca"); err != nil {
		return nil, err
	}
	return Open(dir)
}

// Open reads the authority in a directory. If there is none, or its key is kept elsewhere, the
// error matches fs.ErrNotExist.
func Open(dir string) (*Authority, error) {
	cert, err := readPEM(filepath.Join(dir, CAFile))
	if err != nil {
		return nil, err
	}
	key, err := readPEM(filepath.Join(dir, CAKeyFile))
	if err != nil {
		return nil, err
	}
	a := &Authority{dir: dir}
	if a.cert, err = x509.ParseCertificate(cert); err != nil {
		return nil, fmt.Errorf("%s: %w", CAFile, err)
	}
	private, err := x509.ParsePKCS8PrivateKey(key)
	if err != nil {
		return nil, messages.Errorf(messages.Invalid, "%s: %s is no key that candor site init made (%v): issue the certificate with the program that made this authority", dir, CAKeyFile, err)
	}
	ours, ok := private.(*ecdsa.PrivateKey)
	if !ok {
		return nil, messages.Errorf(messages.Invalid, "%s: %s is no key that candor site init made: issue the certificate with the program that made this authority", dir, CAKeyFile)
	}
	if !ours.PublicKey.Equal(a.cert.PublicKey) {
		return nil, messages.Errorf(messages.Conflict, "%s: the key in %s does not belong to %s", dir, CAKeyFile, CAFile)
	}
	a.key = ours
	return a, nil
}

// Expires returns when the certificate of the authority expires. The certificates that it issues end then at the latest.
func (a *Authority) Expires() time.Time { return a.cert.NotAfter }

// Issue makes the certificate of a host. It writes HOST.pem and HOST.key to the authority's directory, in place of an
// earlier certificate. The certificate is for the host's name and for the DNS names and IP addresses in `reached`. An
// authority that has expired issues no certificates, because nobody would accept them.
func (a *Authority) Issue(host messages.Name, reached []string, now time.Time) error {
	if end := a.Expires(); !now.Before(end) {
		return messages.Errorf(messages.Conflict, "%s: this authority expired on %s: check the clock of this machine; if it is right, renew the authority first (the runbook says how, under \"Certificates that expire\")", filepath.Join(a.dir, CAFile), end.Format(time.DateOnly))
	}
	if !messages.ValidName(host) || host == "ca" {
		return messages.Errorf(messages.Invalid, "host %q: is not the name of a host; write a name like rack1, with lower-case letters, digits and hyphens, but not \"ca\"; write DNS names and addresses after the name of the host", host)
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{Organization: a.cert.Subject.Organization, CommonName: host},
		DNSNames:    []string{host},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   now.Add(-early), NotAfter: now.AddDate(0, 0, HostDays),
	}
	if template.NotAfter.After(a.cert.NotAfter) {
		template.NotAfter = a.cert.NotAfter
	}
	for _, name := range reached {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if name != host {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	key, err := newKey()
	if err != nil {
		return err
	}
	return a.sign(template, key, host)
}

func (a *Authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey, name string) error {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return fmt.Errorf("certificate of %s: %w", name, err)
	}
	template.SerialNumber = serial
	cert, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return messages.Errorf(messages.Invalid, "certificate of %s: %v", name, err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("certificate of %s: %w", name, err)
	}
	if err := writePEM(filepath.Join(a.dir, name+".key"), "PRIVATE KEY", private, 0o600); err != nil {
		return err
	}
	return writePEM(filepath.Join(a.dir, name+".pem"), "CERTIFICATE", cert, 0o644)
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return key, nil
}

func writePEM(file, kind string, der []byte, mode fs.FileMode) error {
	return writePEMs(file, mode, pem.Block{Type: kind, Bytes: der})
}

// writePEMs replaces a file in one step.
func writePEMs(file string, mode fs.FileMode, blocks ...pem.Block) error {
	var text []byte
	for i := range blocks {
		text = append(text, pem.EncodeToMemory(&blocks[i])...)
	}
	if err := durable.WriteFile(file, text, mode); err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	return nil
}

func readPEM(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("certificates: %s is not in PEM", file)
	}
	return block.Bytes, nil
}
