package auctioneer

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// services returns the services of a term. Exchanges of agents become inputs of the desk.
func services(l *term, inputs *inbox) []bus.Service {
	at := func(verb string, h bus.Handler) bus.Endpoint {
		return bus.Endpoint{Name: verb, Subject: messages.Subject(l.Site, messages.Auctioneer, verb, "*"), Handle: l.answered(h)}
	}
	c := l.federated
	intake, operators, steers, nodes := newSubmissions(l), &operations{l}, steering{l}, agents{l, inputs, new(quarantines)}
	offers := &offers{c.peers, l.Clock, intake}
	remote := &remote{l.site, c.peers, c, intake, offers}
	reader := &queries{l, remote}
	commands := &commands{intake, remote, steers}
	visiting := &visiting{l.site, c.peers, c, intake, reader, offers}
	proxied := proxies{l.site, map[string]bus.Handler{
		messages.VerbSubmit: bus.Handle("submit", commands.submit), messages.VerbCancel: bus.Handle("cancel", commands.cancel),
		job.VerbHold: bus.Handle("hold", steers.hold), job.VerbRelease: bus.Handle("release", steers.release),
		job.VerbRequeue: bus.Handle("requeue", steers.requeue), job.VerbChange: bus.Handle("change", steers.change), messages.VerbJobs: bus.Handle("jobs", reader.listJobs),
		messages.VerbJob: bus.Handle("job", reader.job), messages.VerbTasks: bus.Handle("tasks", reader.tasks),
		messages.VerbWhy: bus.Handle("why", reader.why), messages.VerbNodes: bus.Handle("nodes", reader.nodes),
		messages.VerbMarkets: bus.Handle("markets", reader.listMarkets)},
		&bus.Pace{Rate: bus.UserPace}}
	return append(siteServices(at, visiting, remote, offers), []bus.Service{
		{Name: "candor-auctioneer-commands", Version: "1.0.0", Concurrency: 256, Pace: bus.UserPace, Endpoints: []bus.Endpoint{
			at(messages.VerbSubmit, bus.Handle("submit", commands.submit)),
			at(messages.VerbCancel, bus.Handle("cancel", commands.cancel)),
			at(job.VerbHold, bus.Handle("hold", steers.hold)),
			at(job.VerbRelease, bus.Handle("release", steers.release)),
			at(job.VerbRequeue, bus.Handle("requeue", steers.requeue)),
			at(job.VerbChange, bus.Handle("change", steers.change)),
			at(market.VerbQuote, bus.Handle("quote", intake.quote)),
			at(market.VerbDrain, forOperators(operators, "drain", "drain a node", operators.drain)),
			at(market.VerbWindow, forOperators(operators, "window", "add and remove maintenance windows", operators.window)),
			at(market.VerbApply, forOperators(operators, "apply", "change the markets", operators.apply)),
			at(messages.VerbAdmit, bus.Handle("admit", operators.joinTokens)),
			at(messages.VerbReplica, forOperators(operators, "replica", "change the replicas", operators.regroup)),
		}},
		{Name: "candor-auctioneer-agents", Version: "1.0.0", Concurrency: 512, Endpoints: []bus.Endpoint{
			at(messages.VerbRegister, bus.Handle("register", nodes.register)),
			at(messages.VerbExchange, bus.Handle("exchange", nodes.exchange)),
			at(messages.VerbVector, bus.Handle("vector", nodes.vector)),
			at(messages.VerbKept, bus.Handle("kept", reader.kept)),
			at(messages.VerbArchive, bus.Handle("archive", reader.archived)),
			at(market.VerbPast, bus.Handle("past", reader.past)),
		}},
		{Name: "candor-auctioneer-steps", Version: "1.0.0", Concurrency: mostSteps, Endpoints: []bus.Endpoint{
			at(messages.VerbStep, bus.Handle("step", reader.step)),
		}},
		{Name: "candor-auctioneer-proxy", Version: "1.0.0", Concurrency: mostProxied, Endpoints: []bus.Endpoint{
			at(agent.VerbProxy, bus.Handle("proxy", proxied.ask)),
		}},
		{Name: "candor-auctioneer-job", Version: "1.0.0", Concurrency: 64 + mostWaits, Pace: bus.UserPace, Endpoints: []bus.Endpoint{
			at(messages.VerbJob, bus.Handle("job", reader.job)),
		}},
		{Name: "candor-auctioneer", Version: "1.0.0", Discoverable: true, Pace: bus.UserPace,
			Description: "Jobs, nodes and markets of site " + l.Site, Endpoints: []bus.Endpoint{
				at(messages.VerbJobs, bus.Handle("jobs", reader.listJobs)),
				at(messages.VerbTasks, bus.Handle("tasks", reader.tasks)),
				at(messages.VerbWhy, bus.Handle("why", reader.why)),
				at(market.VerbWhatIf, bus.Handle("whatif", reader.whatIf)),
				at(messages.VerbNodes, bus.Handle("nodes", reader.nodes)),
				at(messages.VerbMarkets, bus.Handle("markets", reader.listMarkets)),
				at(market.VerbHistory, bus.Handle("history", reader.history)),
				at(market.VerbReservations, bus.Handle("reservations", reader.reservations)),
				at(messages.VerbStatus, bus.Handle("status", reader.status)),
				at(messages.VerbReplicas, forOperators(operators, "replicas", "list the replicas", operators.replicas)),
			}},
	}...)
}
