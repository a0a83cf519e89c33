package embedded

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner/machine"
)

// gpus records which GPUs of this process's nodes do not work. If a GPU of a node fails or works again, the node gets
// no new tasks. When the node is idle, its agent is started again with the GPUs that work.
type gpus struct {
	mu     sync.Mutex
	broken map[messages.Name][]int // by node: the indices of GPUs that do not work, ascending
	sold   map[messages.Name][]int // broken GPUs at the start of the agent; the node does not sell them
	stop   context.CancelFunc      // stops the method follow
	ended  sync.WaitGroup
}

// healthEvery is the default of [GPUs.Every]. looksIdle is the time between two checks whether a node is idle.
const (
	healthEvery = time.Minute
	looksIdle   = time.Second
)

func (g *gpus) check(n *nodes) {
	program := n.site.config.Devices.Health
	if program == "" {
		return
	}
	broken := map[messages.Name][]int{}
	for name, m := range n.machines {
		reasons := make([]string, len(m.GPUs))
		var checks sync.WaitGroup // if one program hangs, the other GPUs are still checked
		for i := range m.GPUs {
			checks.Go(func() { reasons[i] = m.GPUs[i].Check(program) })
		}
		checks.Wait()
		for i, gpu := range m.GPUs {
			if reasons[i] == "" {
				continue
			}
			if !slices.Contains(g.brokenOf(name), gpu.Index) {
				n.site.log.Warn("a GPU does not work: the node does not offer this GPU", zap.String("node", name), zap.Int("gpu", gpu.Index), zap.String("uuid", gpu.ID), zap.String("reason", reasons[i]))
			}
			broken[name] = append(broken[name], gpu.Index)
		}
		slices.Sort(broken[name])
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.broken = broken
}

func (g *gpus) brokenOf(node messages.Name) []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.broken[node]
}

// starts records that a node's agent starts, and offers only the GPUs that are not broken. It returns the indices of
// the broken GPUs.
func (g *gpus) starts(node messages.Name) []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sold == nil {
		g.sold = map[messages.Name][]int{}
	}
	g.sold[node] = g.broken[node]
	return g.broken[node]
}

// changed returns the nodes whose working GPUs differ from the GPUs that they sell.
func (g *gpus) changed(n *nodes) (names []messages.Name) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range n.here {
		if name := n.here[i].Name; !slices.Equal(g.broken[name], g.sold[name]) {
			names = append(names, name)
		}
	}
	return names
}

func (g *gpus) follow(n *nodes) {
	if n.site.config.Devices.Health == "" {
		return
	}
	ctx, cancel := context.WithCancel(n.site.ctx)
	g.stop = cancel
	interval := cmp.Or(n.site.config.Devices.Every.Std(), healthEvery)
	retired, next := map[messages.Name]bool{}, time.Now().Add(interval)
	g.ended.Go(func() {
		each(ctx, messages.Duration(looksIdle), func() {
			if time.Now().After(next) {
				g.check(n)
				next = time.Now().Add(interval)
			}
			n.renew(g.changed(n), retired)
		})
	})
}

func (g *gpus) close() {
	if g.stop != nil {
		g.stop()
		g.ended.Wait()
	}
}

// renew handles nodes whose GPUs have changed. It stops new tasks on them, and restarts the agents of those nodes that
// are idle.
func (n *nodes) renew(changed []messages.Name, retired map[messages.Name]bool) {
	for i := range n.here {
		name, yes := n.here[i].Name, slices.Contains(changed, n.here[i].Name)
		n.mu.Lock()
		a := n.running[name]
		n.mu.Unlock()
		if a == nil {
			continue
		}
		if yes != retired[name] {
			retired[name] = yes
			a.Retire(yes)
			continue
		}
		if _, _, works := n.without(i, n.gpus.brokenOf(name)); !yes || !works || !a.Idle() {
			continue
		}
		if err := n.restart(name); err != nil {
			n.site.log.Error("the working GPUs of a node have changed, but the agent of the node could not be restarted", zap.String("node", name), zap.Error(err))
			continue
		}
		retired[name] = false
	}
}

func (n *nodes) restart(name messages.Name) error {
	if err := n.stop1(name); err != nil {
		return err
	}
	return n.start1(name)
}

// The method working returns a node and its machine without the broken GPUs. A node may have nothing to sell without
// these GPUs. Then it must take no tasks: the result `works` is false, and the other two results are unchanged.
func (n *nodes) working(i int) (node Node, m machine.Machine, works bool) {
	return n.without(i, n.gpus.starts(n.here[i].Name))
}

func (n *nodes) without(i int, broken []int) (node Node, m machine.Machine, works bool) {
	node, m = n.here[i], n.machines[n.here[i].Name]
	if len(broken) == 0 {
		return node, m, true
	}
	left := m
	left.GPUs = slices.DeleteFunc(slices.Clone(m.GPUs), func(g machine.GPU) bool { return slices.Contains(broken, g.Index) })
	r := *node.Resources
	r.GPUs = len(left.GPUs)
	if r.GPUs == 0 {
		r.GPUType = ""
	}
	rest := node
	rest.Resources, rest.Slots = &r, nil
	for _, s := range node.Slots {
		for j := range n.site.config.Markets {
			s.Slots = min(s.Slots, r.Holds(n.site.config.Markets[j].UnitOf(s.Class)))
		}
		if s.Slots > 0 {
			rest.Slots = append(rest.Slots, s)
		}
	}
	if len(rest.Slots) == 0 {
		return node, m, false
	}
	return rest, left, true
}
