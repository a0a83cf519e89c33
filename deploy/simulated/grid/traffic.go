package grid

import "github.com/candor-grid/candor/messages"

// Traffic counts the messages between actors, and their effects.
type Traffic struct {
	Quotes      uint64 `json:"quotes"`
	Submissions uint64 `json:"submissions"`
	Transfers   uint64 `json:"transfers"` // requests for transfers at the bank
	Vectors     uint64 `json:"vectors"`   // vectors that were published
	Delivered   uint64 `json:"delivered"` // vectors that agents received
	Fetches     uint64 `json:"fetches"`   // requests for a complete vector
	Directives  uint64 `json:"directives"`
	Exchanges   uint64 `json:"exchanges"`
	Heartbeats  uint64 `json:"heartbeats"` // exchanges that only renew a lease
	Claims      uint64 `json:"claims"`     // slots that were claimed
	Grants      uint64 `json:"grants"`
	Commands    uint64 `json:"commands"` // commands applied to the book
	Decisions   uint64 `json:"decisions"`
	Disbanded   uint64 `json:"disbanded"` // gangs whose tasks did not all start in time
	Evicted     uint64 `json:"evicted"`   // nodes that lost their leases
	Events      uint64 `json:"events"`
	Lost        uint64 `json:"lost"`
	Repeated    uint64 `json:"repeated"`
	Books       string `json:"books"` // result of the bank's check of its books
}

// After this time without an answer, a request is sent again.
const patience = messages.Duration(5e9)

func (g *Grid) send(from, to string, deliver func()) {
	g.net.Send(g.now, from, to, func(at messages.Time) { g.queue.Push(at, deliver) })
}

// call delivers a request to an actor, and delivers the answer to the sender. Messages can be lost. If no answer comes,
// call sends the request again, so `serve` may be called more than once.
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
