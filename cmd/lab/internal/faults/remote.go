package faults

import (
	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/bank/clearing"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
)

// roamFor is how long an authorisation to charge a remote job is valid: longer than any run of a job in this
// simulation.
const roamFor = 24 * 3600 * second

// depart enters a user's job for another site into the book. The answer to a repeated request is the same job.
func (l *leader) depart(u *user, answer func(any)) {
	c := &book.EnterRemote{Account: u.name, Key: u.key, Digest: []byte(u.key), Payer: u.name, Spec: u.spec, Peer: u.peer.name}
	if known, _ := l.book().KnownRemote(c); known != nil {
		answer(known.Job)
		return
	}
	l.propose(&book.Command{EnterRemote: c}, func(result any) {
		if passage, ok := result.(book.RemoteReceipt); ok {
			answer(passage.Job)
		}
	})
}

func (l *leader) askPeer(q *desk.Request, over func() bool, answer func(any, error)) {
	l.call(l.r.host.name, l.World.site(q.Peer).books, over, func(to *replica, answer func(any)) {
		to.shell.(*leader).visits.serve(l.name, q, answer)
	}, func(reply any) {
		err, _ := reply.(error)
		answer(reply, err)
	})
}

// askBank sends a command to the site's own bank: a question about an authorisation of a remote job, or a charge for a
// visiting job.
func (l *leader) askBank(c clearing.Command, over func() bool, answer func(any, error)) {
	l.bank(l.r.host.name, over, auctioneer, c, func(came clearing.Result) {
		switch {
		case came.Error != nil:
			answer(nil, came.Error)
		case came.Authorisation == nil:
			answer(&clearingmsg.ClearingReply{}, nil)
		default:
			signed, err := clearing.SignAuthorisation(sealer(l.name), *came.Authorisation)
			answer(&signed, err)
		}
	})
}
