package auctioneer

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// services are what a leader answers.
func (l *leader) services() []bus.Service {
	at := func(verb string, h bus.Handler) bus.Endpoint {
		return bus.Endpoint{Name: verb, Subject: messages.Subject(l.Site, messages.Auctioneer, verb, "*"), Handle: l.answered(h)}
	}
	operators := &operations{l}
	return append(siteServices(at, l.visiting, l.remote, l.offers), []bus.Service{
		{Name: "candor-auctioneer-commands", Version: "1.0.0", Concurrency: 256, Endpoints: []bus.Endpoint{
			at(messages.VerbSubmit, bus.Handle("submit", l.submissions.submit)),
			at(messages.VerbCancel, bus.Handle("cancel", l.submissions.cancel)),
			at(messages.VerbHold, bus.Handle("hold", steering{l}.hold)),
			at(messages.VerbRelease, bus.Handle("release", steering{l}.release)),
			at(messages.VerbRequeue, bus.Handle("requeue", steering{l}.requeue)),
			at(messages.VerbChange, bus.Handle("change", steering{l}.change)),
			at(messages.VerbQuote, bus.Handle("quote", l.submissions.quote)),
			at(messages.VerbDrain, forOperators(operators, "drain", "drain a node", operators.drain)),
			at(messages.VerbApply, forOperators(operators, "apply", "change the markets", operators.apply)),
			at(messages.VerbAdmit, bus.Handle("admit", operators.joinTokens)),
			at(messages.VerbReplica, forOperators(operators, "replica", "change the replicas", operators.regroup)),
		}},
		{Name: "candor-auctioneer-agents", Version: "1.0.0", Concurrency: 512, Endpoints: []bus.Endpoint{
			at(messages.VerbRegister, bus.Handle("register", agents{l}.register)),
			at(messages.VerbExchange, bus.Handle("exchange", agents{l}.exchange)),
			at(messages.VerbVector, bus.Handle("vector", agents{l}.vector)),
			at(messages.VerbKept, bus.Handle("kept", l.queries.kept)),
			at(messages.VerbArchive, bus.Handle("archive", l.queries.archived)),
			at(messages.VerbPast, bus.Handle("past", l.queries.past)),
		}},
		{Name: "candor-auctioneer-job", Version: "1.0.0", Concurrency: 64 + mostWaits, Endpoints: []bus.Endpoint{
			at(messages.VerbJob, bus.Handle("job", l.queries.job)),
		}},
		{Name: "candor-auctioneer", Version: "1.0.0", Discoverable: true,
			Description: "Jobs, nodes and markets of site " + l.Site, Endpoints: []bus.Endpoint{
				at(messages.VerbJobs, bus.Handle("jobs", l.queries.listJobs)),
				at(messages.VerbTasks, bus.Handle("tasks", l.queries.tasks)),
				at(messages.VerbWhy, bus.Handle("why", l.queries.why)),
				at(messages.VerbWhatIf, bus.Handle("whatif", l.queries.whatIf)),
				at(messages.VerbNodes, bus.Handle("nodes", l.queries.nodes)),
				at(messages.VerbMarkets, bus.Handle("markets", l.queries.listMarkets)),
				at(messages.VerbHistory, bus.Handle("history", l.queries.history)),
				at(messages.VerbReservations, bus.Handle("reservations", l.queries.reservations)),
				at(messages.VerbStatus, bus.Handle("status", l.queries.status)),
				at(messages.VerbReplicas, forOperators(operators, "replicas", "list the replicas", operators.replicas)),
			}},
	}...)
}
