package netlab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
)

// namespaces has a network namespace for each host, inside the lab's own namespaces (see [Enter]). So nobody else sees
// their names, and the kernel removes them when the lab's processes have ended.
type namespaces struct {
	dir     string // directory for the files of the hosts' namespaces
	bridges map[int]bool
	hosts   []string // names of the hosts; also the names of their veth and file
}

// Namespaces makes a network with a namespace for each host. The files of the namespaces are in a directory. This
// process must have been started by [Enter].
func Namespaces(dir string) (Network, error) {
	if !Inside() {
		return nil, messages.Errorf(messages.Invalid, "network namespaces: are made only within the lab's own; enter those first")
	}
	n := &namespaces{dir: filepath.Join(dir, "net"), bridges: map[int]bool{}}
	if err := os.MkdirAll(n.dir, 0o700); err != nil {
		return nil, err
	}
	return n, ip("link set lo up")
}

func (n *namespaces) Kind() string { return "network namespaces" }

func (n *namespaces) Address(site, host int) string { return fmt.Sprintf("10.77.%d.%d", site, host) }

func (n *namespaces) Border(site int) string { return n.Address(site, borderHost) }

// file returns the path of the file of a host's namespace.
func (n *namespaces) file(site, host int) string {
	return filepath.Join(n.dir, veth(site, host))
}

// bridge makes the bridge that connects the hosts of a site. On it, the lab has the address of the site's border.
func (n *namespaces) bridge(site int) error {
	if n.bridges[site] {
		return nil
	}
	n.bridges[site] = true
	name := fmt.Sprintf("site%d", site)
	return ip(
		"link add "+name+" type bridge",
		"addr add "+n.Border(site)+"/24 dev "+name,
		"link set "+name+" up")
}

func (n *namespaces) Add(site, host int) error {
	if err := checkPlace(site, host); err != nil {
		return err
	}
	if err := n.bridge(site); err != nil {
		return err
	}
	file, outer := n.file(site, host), veth(site, host)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return err
	}
	if err := run("unshare", "--net="+file, "true"); err != nil {
		return err
	}
	n.hosts = append(n.hosts, outer)
	if err := ip(
		"link add "+outer+" type veth peer name eth0 netns "+file,
		fmt.Sprintf("link set %s master site%d up", outer, site),
	); err != nil {
		return err
	}
	return n.within(site, host,
		"link set lo up",
		"addr add "+n.Address(site, host)+"/24 dev eth0",
		"link set eth0 up")
}

// veth returns the name of the bridge's end of a host's veth pair.
func veth(site, host int) string { return fmt.Sprintf("s%dh%d", site, host) }

func (n *namespaces) Command(site, host int, path string, arguments ...string) *exec.Cmd {
	// The program nsenter executes the command without a fork. So the host's process has the process ID of nsenter.
	return exec.Command("nsenter", append([]string{"--net=" + n.file(site, host), path}, arguments...)...)
}

func (n *namespaces) Cut(site, host int) error { return ip("link set " + veth(site, host) + " down") }

func (n *namespaces) Heal(site, host int) error { return ip("link set " + veth(site, host) + " up") }

// nobody is a link-layer address that no host has. Mute gives it to a host in place of another host's address.
const nobody = "02:00:00:00:00:01"

// Mute gives the host with the index `host` a wrong link-layer address for the host with the index `to`. So none of its
// messages reaches that host.
func (n *namespaces) Mute(site, host, to int) error {
	return n.neighbour(site, host, "replace "+n.Address(site, to)+" lladdr "+nobody+" dev eth0 nud permanent")
}

func (n *namespaces) Hear(site, host, to int) error {
	return n.neighbour(site, host, "del "+n.Address(site, to)+" dev eth0")
}

func (n *namespaces) neighbour(site, host int, change string) error {
	return n.within(site, host, "neigh "+change)
}

func (n *namespaces) Block(site, host, port int) error { return n.rule(site, host, port, "add") }

func (n *namespaces) Unblock(site, host, port int) error { return n.rule(site, host, port, "del") }

func (n *namespaces) rule(site, host, port int, change string) error {
	return n.within(site, host, fmt.Sprintf("rule %s pref 1 ipproto tcp dport %d blackhole", change, port))
}

func (n *namespaces) within(site, host int, lines ...string) error {
	return ipAs([]string{"nsenter", "--net=" + n.file(site, host), "ip"}, lines...)
}

// Close removes the network, so that this process can make another one. When the process ends, its network disappears
// even without Close.
func (n *namespaces) Close() error {
	var failed []error
	for site := range n.bridges {
		failed = append(failed, ip(fmt.Sprintf("link del site%d", site)))
	}
	for _, host := range n.hosts {
		failed = append(failed, ip("link del "+host), unix.Unmount(filepath.Join(n.dir, host), unix.MNT_DETACH))
	}
	return errors.Join(failed...)
}

// The function `ip` runs lines of the command ip, until one line fails.
func ip(lines ...string) error { return ipAs([]string{"ip"}, lines...) }

func ipAs(command []string, lines ...string) error {
	for _, line := range lines {
		if err := run(command[0], append(command[1:len(command):len(command)], strings.Fields(line)...)...); err != nil {
			return err
		}
	}
	return nil
}

// This function runs a command. If the command fails, the error contains the command's output.
func run(name string, arguments ...string) error {
	output, err := exec.Command(name, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(arguments, " "), err, strings.TrimSpace(string(output)))
	}
	return nil
}
