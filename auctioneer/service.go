package auctioneer

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// service collects metrics about the slots that the site sells, and about waiting jobs. Only the leader has these
// metrics. Sealed prices are left out.
type service struct{ *site }

// mostNodesTold is the maximum number of nodes that have their own metrics.
const mostNodesTold = 1000

func described(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("candor_auctioneer_"+name, help, labels, nil)
}

var (
	marketSlots  = described("market_slots", "Slots that a market has of a class, on nodes that take work.", "market", "class")
	marketUsed   = described("market_slots_used", "Slots of a market and class in use.", "market", "class")
	marketWanted = described("market_slots_wanted", "Slots that waiting tasks need in a market and class. Tasks that cannot start yet do not count.", "market", "class")
	marketPrice  = described("market_price", "Price of a market and class, in credits for a slot-second; in a proportional market, the sum of the bids. Absent while prices are sealed.", "market", "class")
	marketJobs   = described("market_jobs", "Jobs of a market, by whether a task of the job was ever started.", "market", "state")
	marketTasks  = described("market_tasks", "Tasks of a market that have a slot (running), that lost their slot for a time (suspended), or that could start now (waiting).", "market", "state")
	marketOldest = described("market_oldest_waiting_seconds", "Waiting time of the first job of a market that can start but has had no slot; 0 if there is no such job.", "market")
	nodesBy      = described("nodes", "Nodes by state.", "state")
	nodeSlots    = described("node_slots", "Slots of a node that take work, by class. Sites of more than 1,000 nodes leave out the series of single nodes.", "node", "class")
	nodeUsed     = described("node_slots_used", "Slots of a node in use, by class.", "node", "class")
	nodeHas      = described("node_resources", "Resources of a node: cpus, gpus, and memory and disk in bytes. A node that takes no work has this metric too.", "node", "resource")
	nodeSold     = described("node_resources_sold", "Resources of the used slots of a class on a node.", "node", "class", "resource")
	licenseAll   = described("licenses", "Licences of the site.", "license")
	licenseUsed  = described("licenses_used", "Licences that tasks use.", "license")
	nodeState    = described("node_state", "1 for the state in which a node is.", "node", "state")
)

var nodeStates = []string{"Up", "Draining", "Quarantined", "Stopped", "Lost"}

// Describe implements [prometheus.Collector].
func (s service) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{marketSlots, marketUsed, marketWanted, marketPrice, marketJobs, marketTasks, marketOldest, nodesBy, nodeSlots, nodeUsed, nodeHas, nodeSold, nodeState, licenseAll, licenseUsed} {
		out <- d
	}
}

// Collect implements [prometheus.Collector].
func (s service) Collect(out chan<- prometheus.Metric) {
	with := s.leadingDesk.Load()
	if with == nil {
		return
	}
	var told []prometheus.Metric // sent after the locks are released
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		told = append(told, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...))
	}
	(*with)(func(d *desk.Desk) {
		for _, config := range d.Configs {
			collectMarket(d, config.Name, s.Clock(), gauge)
		}
	})
	s.replica.read(func(b *book.Book) {
		collectNodes(b.Nodes(), gauge)
		for _, l := range b.Licenses() {
			gauge(licenseAll, float64(l.Total), l.Name)
			gauge(licenseUsed, float64(l.Used), l.Name)
		}
	})
	for _, m := range told {
		out <- m
	}
}

type gauges func(d *prometheus.Desc, value float64, labels ...string)

func collectMarket(d *desk.Desk, name messages.Name, now messages.Time, gauge gauges) {
	m := d.Market(name)
	if m == nil {
		return
	}
	for _, c := range m.SeenBy("", false).Prices() {
		gauge(marketSlots, float64(c.Slots), name, c.Class)
		gauge(marketUsed, float64(c.Slots-c.Idle), name, c.Class)
		if !c.Sealed {
			gauge(marketWanted, float64(c.Pending), name, c.Class)
			gauge(marketPrice, c.Price, name, c.Class)
		}
	}
	started := m.Started()
	gauge(marketJobs, float64(started), name, "started")
	gauge(marketJobs, float64(m.Jobs()-started), name, "waiting")
	running, suspended, waiting := m.Tasks()
	gauge(marketTasks, float64(running), name, "running")
	gauge(marketTasks, float64(suspended), name, "suspended")
	gauge(marketTasks, float64(waiting), name, "waiting")
	waits := 0.0
	if since := m.Oldest(); since != 0 {
		waits = max(0, now.Sub(since).Seconds())
	}
	gauge(marketOldest, waits, name)
}

func collectNodes(nodes []*book.Node, gauge gauges) {
	count := map[string]int{}
	for _, n := range nodes {
		if n.Removed {
			continue
		}
		count[stateOf(n)]++
	}
	for _, state := range nodeStates {
		gauge(nodesBy, float64(count[state]), state)
	}
	if len(nodes) > mostNodesTold {
		return
	}
	for _, n := range nodes {
		if n.Removed {
			continue
		}
		state := stateOf(n)
		gauge(nodeState, 1, n.Name, state)
		for i, c := range n.Slots {
			slots := 0
			if state == "Up" {
				slots = c.Slots
			}
			gauge(nodeSlots, float64(slots), n.Name, c.Class)
			gauge(nodeUsed, float64(n.Used[i]), n.Name, c.Class)
			if i < len(n.Units) {
				collectResources(n.Units[i].Times(n.Used[i]), n.Units[i], gauge, nodeSold, n.Name, c.Class)
			}
		}
		if n.Resources != nil {
			collectResources(*n.Resources, *n.Resources, gauge, nodeHas, n.Name)
		}
	}
}

// collectResources adds metrics with the amounts in r. It leaves out a resource if its amount in `any` is 0, but always
// adds the number of GPUs.
func collectResources(r, any job.Resources, gauge gauges, d *prometheus.Desc, labels ...string) {
	for _, of := range []struct {
		name        string
		amount, any int64
	}{{"cpus", int64(r.CPUs), int64(any.CPUs)}, {"memory", r.Memory, any.Memory}, {"gpus", int64(r.GPUs), int64(any.GPUs)}, {"disk", r.Disk, any.Disk}} {
		if of.any > 0 || of.name == "gpus" {
			gauge(d, float64(of.amount), append(labels[:len(labels):len(labels)], of.name)...)
		}
	}
}
