package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/nodeagent"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/machine"
)

// startAtOnce is the largest number of agents that are started or stopped at the same time.
const startAtOnce = 16

type nodes struct {
	site     *share
	here     []Node
	machines map[messages.Name]machine.Machine

	mu      sync.Mutex
	running map[messages.Name]*agent
	gpus    gpus
}

type agent struct {
	*nodeagent.Agent
	bus bus.Bus
}

func newNodes(s *share) (*nodes, error) {
	n := &nodes{site: s, here: s.config.Nodes, running: map[messages.Name]*agent{}}
	if s.host != nil {
		n.here = nil
		for _, node := range s.config.Nodes {
			if slices.Contains(s.host.Nodes, node.Name) {
				n.here = append(n.here, node)
			}
		}
	}
	if only := s.options.Only; only != nil && only.Node != "" {
		n.here = slices.DeleteFunc(slices.Clone(n.here), func(node Node) bool { return node.Name != only.Node })
	}
	var err error
	n.here, n.machines, err = divide(n.here, s.config.Markets, func() (machine.Machine, error) { return machine.Discover(s.config.Devices.Program) })
	return n, err
}

func (n *nodes) startAll() error {
	var names []messages.Name
	for _, node := range n.here {
		names = append(names, node.Name)
	}
	if only := n.site.options.Only; only != nil && len(names) == 0 {
		return messages.Errorf(messages.NotFound, "node %q: is not configured for this process", only.Node)
	}
	n.gpus.check(n)
	if err := n.each(names, n.start1); err != nil {
		return err
	}
	n.gpus.follow(n)
	return nil
}

// each calls the function `do` for all named nodes, at most startAtOnce at the same time.
func (n *nodes) each(names []messages.Name, do func(messages.Name) error) error {
	turns := make(chan struct{}, startAtOnce)
	return Each(names, func(name messages.Name) error {
		turns <- struct{}{}
		defer func() { <-turns }()
		return do(name)
	})
}

func (n *nodes) start1(name messages.Name) error {
	i := slices.IndexFunc(n.here, func(node Node) bool { return node.Name == name })
	if i < 0 {
		return messages.Errorf(messages.NotFound, "node %q: does not run in this process", name)
	}
	n.mu.Lock()
	_, runs := n.running[name]
	n.mu.Unlock()
	if runs {
		return messages.Errorf(messages.Conflict, "node %s: runs already", name)
	}
	node, machine, works := n.working(i)
	a, err := n.startAgent(node, machine)
	if err != nil {
		return fmt.Errorf("node %s: %w", name, err)
	}
	if !works {
		a.Retire(true)
	}
	n.mu.Lock()
	n.running[name] = a
	n.mu.Unlock()
	return nil
}

func (n *nodes) startAgent(node Node, machine machine.Machine) (*agent, error) {
	s := n.site
	var run runner.Runner
	if s.options.Runner != nil {
		var err error
		if run, err = s.options.Runner(node.Name); err != nil {
			return nil, err
		}
	}
	b, err := s.connectAs(identity.Node, node.Name)
	if err != nil {
		return nil, err
	}
	tasks := s.tasks
	tasks.Machine = machine
	// All agents of a process share their metrics, because there may be thousands of agents.
	started, err := nodeagent.Start(s.ctx, nodeagent.Config{
		Site: s.config.Site, Node: node.Name, Slots: node.Slots, MostSuspended: node.Suspended, Bus: b, Runner: run,
		Dir: filepath.Join(s.config.State, "nodes", node.Name), Operators: s.config.Operators,
		Log: s.log.Named(messages.NodeAgent), Metrics: s.metrics.shared,
		Tasks: tasks, Prolog: s.config.Tasks.Prolog, Epilog: s.config.Tasks.Epilog, Resources: node.Resources, Labels: node.Labels, Executor: s.options.Executor, LeaveRunning: s.options.LeaveRunning,
	})
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return &agent{started, b}, nil
}

func (n *nodes) stop1(name messages.Name) error {
	n.mu.Lock()
	a, ok := n.running[name]
	delete(n.running, name)
	n.mu.Unlock()
	if !ok {
		return messages.Errorf(messages.NotFound, "node %q: does not run here", name)
	}
	return errors.Join(a.Close(), a.bus.Close())
}

func (n *nodes) stopAll() error {
	n.gpus.close()
	n.mu.Lock()
	names := slices.Sorted(maps.Keys(n.running))
	n.mu.Unlock()
	return n.each(names, n.stop1)
}

// ready waits until every running agent of this process is registered.
func (n *nodes) ready(ctx context.Context) error {
	n.mu.Lock()
	waiting := maps.Clone(n.running)
	n.mu.Unlock()
	for _, a := range waiting {
		select {
		case <-a.Ready():
		case <-ctx.Done():
			return messages.Errorf(messages.Unavailable, "not every node could register with the auctioneer: %v", ctx.Err())
		}
	}
	return nil
}
