package netlab

import (
	"fmt"
	"net"
	"os/exec"

	"github.com/candor-grid/candor/messages"
)

// loopback gives each host of a lab an address of this machine's loopback network.
type loopback struct {
	block int          // the addresses of this lab are 127.block.0.0/16
	guard net.Listener // listens in the block, so that no other lab uses it
}

// Labs can use these blocks 127.N.0.0/16. A lab reserves a block by listening on the port guardPort of 127.N.0.1.
const (
	firstBlock = 64
	lastBlock  = 127
	guardPort  = 17077
)

// Loopback takes a block of loopback addresses that no other lab uses.
func Loopback() (Network, error) {
	for block := firstBlock; block <= lastBlock; block++ {
		guard, err := net.Listen("tcp", fmt.Sprintf("127.%d.0.1:%d", block, guardPort))
		if err == nil {
			return &loopback{block, guard}, nil
		}
	}
	return nil, messages.Errorf(messages.Exhausted, "all blocks of loopback addresses from 127.%d to 127.%d are taken by other labs", firstBlock, lastBlock)
}

func (l *loopback) Kind() string { return "loopback addresses" }

func (l *loopback) Address(site, host int) string {
	return fmt.Sprintf("127.%d.%d.%d", l.block, site, host)
}

func (l *loopback) Border(site int) string { return l.Address(site, borderHost) }

func (l *loopback) Add(site, host int) error { return checkPlace(site, host) }

func (l *loopback) Command(_, _ int, path string, arguments ...string) *exec.Cmd {
	return exec.Command(path, arguments...)
}

func (l *loopback) Cut(site, host int) error { return l.cannot("cut", site, host) }

func (l *loopback) Heal(site, host int) error { return l.cannot("healed", site, host) }

func (l *loopback) Mute(site, host, _ int) error { return l.cannot("muted", site, host) }

func (l *loopback) Hear(site, host, _ int) error { return l.cannot("heard", site, host) }

func (l *loopback) Block(site, host, _ int) error { return l.cannot("blocked", site, host) }

func (l *loopback) Unblock(site, host, _ int) error { return l.cannot("unblocked", site, host) }

func (l *loopback) cannot(what string, site, host int) error {
	return messages.Errorf(messages.Unavailable, "host %s: cannot be %s on the loopback network; that takes network namespaces", l.Address(site, host), what)
}

func (l *loopback) Close() error { return l.guard.Close() }
