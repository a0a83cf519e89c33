package desk

import (
	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// delays tells the book when the begin time of a job or of a maintenance window has come, because the book's clock
// moves only with commands.
type delays struct {
	*core
	busy  bool
	fails int
	retry messages.Duration
}

// The clock can jump ahead by more than the time that has passed. leap commits a command that tells the book how far
// the clock has jumped.
func (d *delays) leap() {
	if !d.busy {
		d.begin("the notice to the book that the clock was set ahead")
	}
}

func (d *delays) step() {
	if d.busy {
		return
	}
	d.book.Read(func(b *book.Book) {
		switch at := b.NextBegin(); {
		case at == 0:
		case at > d.now.Wall:
			d.wakeAt(at)
		default:
			d.begin("jobs and maintenance windows whose time has come")
		}
	})
}

// begin commits a command that tells the book the present time. The argument `what` names the duty in messages to
// operators.
func (d *delays) begin(what string) {
	if d.now.Mono < d.retry {
		d.wakeIn(d.retry - d.now.Mono)
		return
	}
	d.busy = true
	d.propose(&book.Command{Begin: &book.Begin{}}, func(_ any, err error) {
		d.busy = false
		if err == nil {
			d.fails, d.retry = 0, 0
			return
		}
		d.fails++
		d.retry = d.retryAt(d.fails)
		d.tell(Waiting{what, err})
	})
}
