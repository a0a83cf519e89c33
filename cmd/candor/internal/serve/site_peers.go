package serve

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
)

// reachedAt returns the addresses at which servers of other sites can connect to this site.
func reachedAt(c *embedded.Config) ([]string, error) {
	listening := []string{c.ListenLeaf}
	for i := range c.Hosts {
		listening = append(listening, c.Hosts[i].Leaf)
	}
	if len(c.Hosts) > 0 {
		listening = listening[1:]
	}
	scheme := "nats://"
	if c.TLS != nil {
		scheme = "tls://"
	}
	var urls []string
	for _, address := range listening {
		host, port, err := net.SplitHostPort(address)
		if address == "" {
			continue
		}
		if ip := net.ParseIP(host); err != nil || port == "0" || ip != nil && ip.IsUnspecified() {
			return nil, messages.Errorf(messages.Invalid, "%s: other sites cannot reach this address; give another address with --url, like %shub.%s.example:7422", address, scheme, c.Site)
		}
		urls = append(urls, scheme+address)
	}
	if len(urls) == 0 {
		return nil, messages.Errorf(messages.Invalid, "listen_leaf: is missing, so that servers of peers cannot connect; set listen_leaf, or let the other site invite this site")
	}
	return urls, nil
}

// withPeer returns the text of a configuration file with one more peer. The text stays the same if the file has the
// peer with the same terms. If the result would be wrong, it returns an error.
func withPeer(file string, p embedded.Peer) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, messages.Errorf(messages.Invalid, "--config: %v", err)
	}
	c, d, err := decoded(file, text)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(c.Peers, func(known embedded.Peer) bool { return known.Name == p.Name }); i >= 0 {
		if reflect.DeepEqual(c.Peers[i], p) {
			return text, nil // the configuration stays the same
		}
		return nil, messages.Errorf(messages.Conflict, "%s: site %s is a peer already, with other keys, addresses or another limit; remove the peer from the file, then join again", file, p.Name)
	}
	changed, err := insertPeer(d, string(text), p)
	if err != nil {
		return nil, err
	}
	return []byte(changed), checkText(file, []byte(changed), p)
}

// checkText checks the text of a changed configuration: it must have no error, and name the peer with its keys and
// limit.
func checkText(file string, text []byte, p embedded.Peer) error {
	c, d, err := decoded(file, text)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(c.Peers, func(known embedded.Peer) bool { return known.Name == p.Name })
	if i < 0 || !slices.Equal(c.Peers[i].Keys, p.Keys) || c.Peers[i].Limit != p.Limit || c.Peers[i].SameOwner != p.SameOwner {
		return messages.Errorf(messages.Internal, "%s: site %s could not be added to the peers; add the peer by hand:\n%s", file, p.Name, item(p, "  "))
	}
	return (&settings{file: file}).check(&c, d)
}

// insertPeer inserts a peer into the text of a configuration file: before the other peers or, if there are none, in a
// new list at the end of the file.
func insertPeer(d *document, text string, p embedded.Peer) (string, error) {
	value, found := d.Find("peers")
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if !found {
		if mapping, ok := d.Root.(*ast.MappingNode); ok && mapping.IsFlowStyle {
			return "", byHand(d, p)
		}
		return text + "\n# Sites with which this one shares work and settles.\npeers:\n" + item(p, "  "), nil
	}
	sequence, ok := value.(*ast.SequenceNode)
	if !ok || sequence.IsFlowStyle || len(sequence.Values) == 0 {
		return "", byHand(d, p)
	}
	at := sequence.Start.Position // position of the first "-"
	lines := strings.SplitAfter(text, "\n")
	if at.Line < 1 || at.Line > len(lines) || strings.TrimSpace(lines[at.Line-1][:at.Column-1]) != "" {
		return "", byHand(d, p)
	}
	indent := strings.Repeat(" ", at.Column-1)
	return strings.Join(slices.Insert(lines, at.Line-1, item(p, indent)), ""), nil
}

func byHand(d *document, p embedded.Peer) error {
	return messages.Errorf(messages.Invalid, "%s: the command can add a peer only if each line of the list has one peer. Add this peer by hand. Before you repeat candor site join, remove the peer again:\n%s", d.Name, item(p, "  "))
}

func item(p embedded.Peer, indent string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s- name: %s\n", indent, p.Name)
	field := func(name string, value any) {
		text, err := json.Marshal(value) // JSON is valid YAML
		if err != nil {
			panic(err) // strings and lists of strings can always be written
		}
		fmt.Fprintf(&out, "%s  %s: %s\n", indent, name, text)
	}
	if len(p.URLs) > 0 {
		field("urls", p.URLs)
	}
	if p.Creds != "" {
		field("creds", p.Creds)
	}
	if p.CA != "" {
		field("ca", p.CA)
	}
	field("keys", p.Keys)
	fmt.Fprintf(&out, "%s  limit: %s # the most that the peer may owe\n", indent, p.Limit)
	if p.SameOwner {
		field("same_owner", true)
	}
	return out.String()
}
