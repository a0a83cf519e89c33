package netlab

import (
	"context"
	"net/url"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
)

// Impostor sends messages in the name of a site without hosts. It has an unrestricted NATS server, the credentials that
// a peer issued, and the key of the site's bank. So the peer believes that messages of the Impostor come from the site.
type Impostor struct {
	bus.Bus
	Name, To messages.Name
	Key      clearing.Signer // key of the site's bank

	server *server.Server
}

// Impersonate connects an impostor of this site to a peer. The peer must be an earlier site of the lab.
func (s *Site) Impersonate(ctx context.Context, peer messages.Name) (*Impostor, error) {
	o := &server.Options{Host: s.lab.network.Border(s.number), Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, ServerName: "impostor-of-" + s.Name}
	for _, p := range s.peers {
		if p.Name != peer {
			continue
		}
		remote := &server.RemoteLeafOpts{Credentials: p.Creds}
		for _, text := range p.URLs {
			u, err := url.Parse(text)
			if err != nil {
				return nil, err
			}
			u.Scheme = "nats-leaf"
			remote.URLs = append(remote.URLs, u)
		}
		o.LeafNode.Remotes = append(o.LeafNode.Remotes, remote)
	}
	if len(o.LeafNode.Remotes) == 0 {
		return nil, messages.Errorf(messages.NotFound, "site %s has no peer %s", s.Name, peer)
	}
	own, err := server.NewServer(o)
	if err != nil {
		return nil, err
	}
	own.Start()
	i := &Impostor{Name: s.Name, To: peer, Key: s.authority, server: own}
	if err := Until(ctx, i.linked); err != nil {
		own.Shutdown()
		return nil, err
	}
	i.Bus, err = bus.Connect(bus.Config{URL: own.ClientURL(), Name: messages.ServiceIdentity(s.Name)})
	if err != nil {
		own.Shutdown()
	}
	return i, err
}

func (i *Impostor) linked(context.Context) error {
	if i.server.ReadyForConnections(time.Second) && i.server.NumLeafNodes() > 0 {
		return nil
	}
	return messages.Errorf(messages.Unavailable, "the server of the impostor of %s is not linked to %s", i.Name, i.To)
}

// Subject returns the NATS subject of a request from the site to the peer.
func (i *Impostor) Subject(actor, verb string) string {
	return clearingmsg.PeerVerb{Actor: actor, Verb: verb}.Subject(i.Name, i.To)
}

// Answer makes the impostor answer the peer's requests to an actor. There is one handler for each verb.
func (i *Impostor) Answer(actor string, handlers map[string]bus.Handler) error {
	service := bus.Service{Name: "candor-impostor-" + actor, Version: "1.0.0"}
	for verb, handle := range handlers {
		service.Endpoints = append(service.Endpoints, bus.Endpoint{Name: verb, Subject: clearingmsg.PeerVerb{Actor: actor, Verb: verb}.Subject(i.To, i.Name), Handle: handle})
	}
	_, err := i.Serve(service)
	return err
}

// Close ends the impostor's connection and its server.
func (i *Impostor) Close() error {
	err := i.Bus.Close()
	i.server.Shutdown()
	i.server.WaitForShutdown()
	return err
}
