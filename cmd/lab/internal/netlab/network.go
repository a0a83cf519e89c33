package netlab

import (
	"os/exec"

	"github.com/candor-grid/candor/messages"
)

// Network connects the hosts. Sites and hosts are numbered from 1.
type Network interface {
	// Kind says in a few words what the hosts are.
	Kind() string
	// Address returns the address of a host.
	Address(site, host int) string
	// Border returns the address under which the hosts of a site reach the program that runs the lab.
	Border(site int) string
	// Add adds a host.
	Add(site, host int) error
	// Command returns a command that runs as a process of a host.
	Command(site, host int, path string, arguments ...string) *exec.Cmd
	// Cut disconnects a host from its site's network. Heal connects the host again.
	Cut(site, host int) error
	Heal(site, host int) error
	// Mute drops everything that a host sends to another host of its site. Hear ends this.
	Mute(site, host, to int) error
	Hear(site, host, to int) error
	// Block stops a host's messages to a port of other hosts. Unblock ends this.
	Block(site, host, port int) error
	Unblock(site, host, port int) error
	// Close removes the parts of the network that would remain after the end of this process, such as bridges and
	// disks.
	Close() error
}

// These are the largest numbers of sites and hosts in a lab, and the number of the border host. They hold for both
// kinds of network: namespaces and loopback.
const (
	maxSites   = 200
	maxHosts   = 200
	borderHost = 254
)

func checkPlace(site, host int) error {
	if site < 1 || site > maxSites || host < 1 || host > maxHosts {
		return messages.Errorf(messages.Invalid, "host %d of site %d: a lab can have at most %d sites, with at most %d hosts each", host, site, maxSites, maxHosts)
	}
	return nil
}
