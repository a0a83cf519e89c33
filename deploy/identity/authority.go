package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/durable"
)

// Account is the name of the NATS account for all traffic of a site.
const Account = "CANDOR"

// Authority has a site's keys and issues credentials. It is safe for concurrent use.
type Authority struct {
	*directory
	signer
}

// directory is the keys directory of a site, with the keys that were read last.
type directory struct {
	site messages.Name
	dir  string
	held atomic.Pointer[keys] // Reload replaces it as a whole
	// life is how long new credentials of users and operators are valid, in nanoseconds. 0 means DefaultLife.
	life atomic.Int64
}

// Create makes the keys of a site in dir, which must not exist. After an error there are no keys.
func Create(dir string, site messages.Name) (*Authority, error) {
	if !messages.ValidName(site) {
		return nil, messages.Errorf(messages.Invalid, "site %q: is not a valid name", site)
	}
	if _, err := os.Stat(dir); err == nil {
		return nil, messages.Errorf(messages.Conflict, "keys directory %s: exists already; keys are never replaced in place", dir)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, fmt.Errorf("keys directory: %w", err)
	}
	aside, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".new-")
	if err != nil {
		return nil, fmt.Errorf("keys directory: %w", err)
	}
	defer os.RemoveAll(aside)
	if err := writeKeys(aside, site); err != nil {
		return nil, err
	}
	if err := durable.RenameTree(aside, dir); err != nil {
		return nil, fmt.Errorf("keys directory: %w", err)
	}
	return Open(dir)
}

func writeKeys(dir string, site messages.Name) error {
	if err := os.WriteFile(filepath.Join(dir, siteFile), []byte(site+"\n"), 0o600); err != nil {
		return fmt.Errorf("keys directory: %w", err)
	}
	for _, file := range keyFiles() {
		make := nkeys.CreateAccount
		if file == operatorFile {
			make = nkeys.CreateOperator
		}
		pair, err := make()
		if err != nil {
			return fmt.Errorf("making key %s: %w", file, err)
		}
		seed, err := pair.Seed()
		if err != nil {
			return fmt.Errorf("making key %s: %w", file, err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), append(seed, '\n'), 0o600); err != nil {
			return fmt.Errorf("keys directory: %w", err)
		}
	}
	return nil
}

// These are the names of the files in a keys directory.
const (
	siteFile     = "site"
	operatorFile = "operator.nk"
	systemFile   = "system.nk"
	accountFile  = "account.nk"
)

func roleFile(r Role) string { return "role-" + string(r) + ".nk" }

func keyFiles() []string {
	files := []string{operatorFile, systemFile, accountFile}
	for _, r := range roles {
		files = append(files, roleFile(r))
	}
	return files
}

// Open reads the keys that Create made. It refuses a key that anybody but its owner can read. If dir does not exist,
// the error matches fs.ErrNotExist.
func Open(dir string) (*Authority, error) {
	site, err := os.ReadFile(filepath.Join(dir, siteFile))
	if err != nil {
		return nil, fmt.Errorf("keys directory: %w", err)
	}
	d := &directory{site: trim(site), dir: dir}
	if !messages.ValidName(d.site) {
		return nil, fmt.Errorf("keys directory: %s does not hold a site's name; restore the directory from a backup, or copy it from another host", filepath.Join(dir, siteFile))
	}
	held, err := readKeys(dir, d.site)
	if err != nil {
		return nil, err
	}
	d.held.Store(held)
	return &Authority{directory: d, signer: signer{d}}, nil
}

// OpenOrCreate opens the keys of a site in dir, and creates them if dir does not exist. It returns an error if dir has
// the keys of another site.
func OpenOrCreate(dir string, site messages.Name) (*Authority, error) {
	a, err := Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if _, missing := os.Stat(dir); errors.Is(missing, fs.ErrNotExist) {
			return Create(dir, site)
		}
	}
	return checkSite(a, site, err)
}

// OpenFor opens the keys of a site in dir. It returns an error if dir has the keys of another site. If dir does not
// exist, the error matches fs.ErrNotExist.
func OpenFor(dir string, site messages.Name) (*Authority, error) {
	a, err := Open(dir)
	return checkSite(a, site, err)
}

func checkSite(a *Authority, site messages.Name, err error) (*Authority, error) {
	if err != nil {
		return nil, err
	}
	if a.site != site {
		return nil, messages.Errorf(messages.Conflict, "keys directory: %s says that the keys belong to site %q, not to %q; give the directory of %q, or put the file back from a backup", filepath.Join(a.dir, siteFile), a.site, site, site)
	}
	return a, nil
}

// Site returns the site of these keys.
func (d *directory) Site() messages.Name { return d.site }
