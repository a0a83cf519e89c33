package desk

import (
	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/messages"
)

// lookAround is the time between two searches for jobs whose authorisation has ended or will end soon.
const lookAround = messages.Duration(1e9)

// errands asks the bank and peers about remote jobs. It also ends remote and visiting jobs whose authorisations end.
type errands struct {
	*core
	federation *federation.Errands
	look       messages.Duration // time of the next search for jobs to end; 0 means now
}

func (e *errands) step() {
	if !e.federation.Open() {
		return
	}
	e.book.Read(func(b *book.Book) {
		for _, q := range e.federation.Due(e.now.Mono, b) {
			e.run(q)
		}
		if e.now.Mono >= e.look {
			e.look = e.now.Mono + lookAround
			for _, c := range e.federation.Ending(e.now.Wall, b) {
				e.propose(c, func(_ any, err error) {
					if err != nil {
						e.tell(Waiting{"jobs from or to other sites that must end", err})
					}
				})
			}
		}
	})
	if at, known := e.federation.Wake(); known {
		e.wakeIn(at - e.now.Mono)
	}
	e.wakeIn(e.look - e.now.Mono)
}

// run sends the next request about a remote job. When the answer comes, it proposes the command that follows from the
// answer.
func (e *errands) run(q federation.Request) {
	to := messages.Auctioneer
	if q.Peer == "" {
		to = messages.Bank
	}
	e.ask(Request{To: to, Peer: q.Peer, Verb: q.Verb, Body: q.Body, Reply: q.Reply, Within: q.Within}, func(reply any, err error) {
		var c *book.Command
		e.book.Read(func(b *book.Book) { c = e.federation.Answered(e.now.Mono, b, q.ID, reply, err) })
		if c == nil {
			e.ran(&q, false, err)
			return
		}
		e.propose(c, func(_ any, err error) {
			e.book.Read(func(b *book.Book) { e.federation.Committed(e.now.Mono, b, q.ID, err) })
			e.ran(&q, err == nil, err)
		})
	})
}

func (e *errands) ran(q *federation.Request, done bool, err error) {
	e.tell(Ran{Job: q.Job, Peer: q.Peer, Done: done, Err: err, Trouble: e.federation.Trouble(q.Peer)})
}
