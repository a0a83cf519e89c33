package netlab

import (
	"os/exec"

	"github.com/candor-grid/candor/messages"
)

// Network connects the hosts. Sites and hosts are numbered from 1.
type Network interface {
	// Kind says in a few words what hosts are.
	Kind() string
	// Address returns the address of a host.
	Address(site, host int) string
	// Border is the lab's own address as the hosts of a site see it.
	Border(site int) string
	// Add makes a host.
	Add(site, host int) error
	// Command is a command as a process of a host.
	Command(site, host int, path string, arguments ...string) *exec.Cmd
	// Cut disconnects a host from its site's network; Heal connects it again.
	Cut(site, host int) error
	Heal(site, host int) error
	// Mute drops what a host sends to another host of its site; Hear lets it arrive again.
	Mute(site, host, to int) error
	Hear(site, host, to int) error
	// Block prevents a host from reaching a port of other hosts; Unblock allows it again.
	Block(site, host, port int) error
	Unblock(site, host, port int) error
	// Close removes what does not disappear with the process.
	Close() error
}

// Limits of both networks' addresses.
const (
	maxSites   = 200
	maxHosts   = 200
	borderHost = 254
)

func checkPlace(site, host int) error {
	if site < 1 || site > maxSites || host < 1 || host > maxHosts {
		return messages.Errorf(messages.Invalid, "host %d of site %d: a lab has at most %d sites of %d hosts", host, site, maxSites, maxHosts)
	}
	return nil
}
