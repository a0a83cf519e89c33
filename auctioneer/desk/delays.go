package desk

import "github.com/candor-grid/candor/auctioneer/book"

// delays tell the book the time when a job is to begin: without a command the book's
// clock stands still.
type delays struct {
	*core
	busy bool
}

// leap tells the book that the clock was set ahead.
func (d *delays) leap() {
	if !d.busy {
		d.begin("the note that the clock was set ahead")
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
			d.begin("jobs whose time to begin has come")
		}
	})
}

// begin tells the book the time, for which something waits.
func (d *delays) begin(what string) {
	d.busy = true
	d.propose(&book.Command{Begin: &book.Begin{}}, func(_ any, err error) {
		d.busy = false
		if err != nil {
			d.tell(Waiting{what, err})
		}
	})
}
