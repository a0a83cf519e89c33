package netlab

import (
	"os/exec"

	"github.com/candor-grid/candor/messages"
)

// Network is what hosts are connected by. Sites and hosts count from 1.
type Network interface {
	// Kind says in a few words what hosts are.
	Kind() string
	// Address is a host's.
	Address(site, host int) string
	// Border is the lab's own address as the hosts of a site see it.
	Border(site int) string
	// Add makes a host.
	Add(site, host int) error
	// Command is a command as a process of a host.
	Command(site, host int, path string, arguments ...string) *exec.Cmd
	// Cut takes a host off its site's network; Heal puts it back.
	Cut(site, host int) error
	Heal(site, host int) error
	// Mute has what a host sends not arrive at another host of its site; Hear has it
	// arrive again.
	Mute(site, host, to int) error
	Hear(site, host, to int) error
	// Block has a host reach no other host's port; Unblock has it reach them again.
	Block(site, host, port int) error
	Unblock(site, host, port int) error
	// Close gives up what is not given up by itself at the end of the process.
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
