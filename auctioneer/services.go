package auctioneer

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// services are what a leader answers.
func (l *leader) services() []bus.Service {
	at := func(verb string, h bus.Handler) bus.Endpoint {
		return bus.Endpoint{Name: verb, Subject: messages.Subject(l.Site, messages.Auctioneer, verb, "*"), Handle: h}
	}
	return append(l.siteServices(at), []bus.Service{
		{Name: "candor-auctioneer-commands", Version: "1.0.0", Concurrency: 256, Endpoints: []bus.Endpoint{
			at(messages.VerbSubmit, bus.Handle("submit", l.submissions.submit)),
			at(messages.VerbCancel, bus.Handle("cancel", l.submissions.cancel)),
			at(messages.VerbQuote, bus.Handle("quote", l.submissions.quote)),
			at(messages.VerbDrain, bus.Handle("drain", l.drain)),
			at(messages.VerbApply, bus.Handle("apply", l.apply)),
			at(messages.VerbAdmit, bus.Handle("admit", l.joinTokens)),
			at(messages.VerbReplica, bus.Handle("replica", l.regroup)),
		}},
		{Name: "candor-auctioneer-agents", Version: "1.0.0", Concurrency: 512, Endpoints: []bus.Endpoint{
			at(messages.VerbRegister, bus.Handle("register", agents{l}.register)),
			at(messages.VerbExchange, bus.Handle("exchange", agents{l}.exchange)),
			at(messages.VerbVector, bus.Handle("vector", agents{l}.vector)),
		}},
		{Name: "candor-auctioneer", Version: "1.0.0", Discoverable: true,
			Description: "jobs, nodes and markets of site " + l.Site, Endpoints: []bus.Endpoint{
				at(messages.VerbJobs, bus.Handle("jobs", l.listJobs)),
				at(messages.VerbJob, bus.Handle("job", l.job)),
				at(messages.VerbTasks, bus.Handle("tasks", l.tasks)),
				at(messages.VerbWhy, bus.Handle("why", l.why)),
				at(messages.VerbNodes, bus.Handle("nodes", l.nodes)),
				at(messages.VerbMarkets, bus.Handle("markets", l.listMarkets)),
				at(messages.VerbReservations, bus.Handle("reservations", l.reservations)),
				at(messages.VerbStatus, bus.Handle("status", l.status)),
				at(messages.VerbReplicas, bus.Handle("replicas", l.replicas)),
			}},
	}...)
}
