package book

import "github.com/candor-grid/candor/messages"

// Gone says whether a node's claims should all be elsewhere.
func (n *Node) Gone(now messages.Time) bool {
	return n.Up && n.Drain != 0 && now >= n.Drain && len(n.Claims) > 0
}

// Drain has a node take no more work, and what is left at Until ended and run
// elsewhere; with Until 0 it takes work again, were it in quarantine too. Result: int, tasks it has.
type Drain struct {
	Node  messages.Name
	Until messages.Time
	Evict bool // it is Until
}

func (b *Book) drain(c *Drain) any {
	i, known := b.names[c.Node]
	if !known {
		return messages.Errorf(messages.NotFound, "there is no node %q", c.Node)
	}
	n := b.nodes[i]
	b.touchNode(i)
	if !c.Evict {
		if n.Drain = c.Until; c.Until == 0 && n.Health.Quarantined != 0 {
			n.lift(b.now)
			n.Health.Level = 0
		}
		return len(n.Claims)
	}
	if n.Drain == 0 || n.Drain != c.Until {
		return len(n.Claims)
	}
	for _, r := range n.held() {
		b.requeue(messages.Attempt{Task: r, Number: n.Claims[r].Attempt})
	}
	return len(n.Claims)
}
