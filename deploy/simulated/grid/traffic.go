package grid

import "github.com/candor-grid/candor/messages"

// Traffic counts the messages between actors, and their effects.
type Traffic struct {
	Quotes      uint64 `json:"quotes"`
	Submissions uint64 `json:"submissions"`
	Transfers   uint64 `json:"transfers"` // requests to the bank
	Vectors     uint64 `json:"vectors"`   // published
	Delivered   uint64 `json:"delivered"` // vectors, at agents
	Fetches     uint64 `json:"fetches"`   // whole vectors asked for
	Directives  uint64 `json:"directives"`
	Exchanges   uint64 `json:"exchanges"`
	Heartbeats  uint64 `json:"heartbeats"` // exchanges that only renew a lease
	Claims      uint64 `json:"claims"`     // slots claimed
	Grants      uint64 `json:"grants"`
	Commands    uint64 `json:"commands"` // applied to the book
	Decisions   uint64 `json:"decisions"`
	Disbanded   uint64 `json:"disbanded"` // gangs that did not come together in time
	Evicted     uint64 `json:"evicted"`   // nodes that fell silent
	Events      uint64 `json:"events"`
	Lost        uint64 `json:"lost"`
	Repeated    uint64 `json:"repeated"`
	Books       string `json:"books"` // the bank's own check of its books
}

// patience is after how long without an answer a request is sent again.
const patience = messages.Duration(5e9)

// send brings a message from one actor to another.
func (g *Grid) send(from, to string, deliver func()) {
	g.net.Send(g.now, from, to, func(at messages.Time) { g.queue.Push(at, deliver) })
}

// call brings a request to an actor and its answer back. A request without an answer
// is sent again after patience, so that serve may be called more than once.
func (g *Grid) call(from, to string, serve func() any, answered func(any)) {
	done := false
	var try func()
	try = func() {
		if done {
			return
		}
		g.send(from, to, func() {
			reply := serve()
			g.send(to, from, func() {
				if !done {
					done = true
					answered(reply)
				}
			})
		})
		if !g.net.Reliable() {
			g.queue.Push(g.now.Add(patience), try)
		}
	}
	try()
}
