package desk

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/backoff"
)

// Notices names requests that send notifications about jobs. The body is a *[book.Notice]; the answer is empty, or an
// error.
const Notices messages.Name = "notices"

const (
	noticesAtOnce = 16 // number of notifications that are sent at the same time
	noticesToHost = 2  // maximum for one host; the mail relay counts as one host
	noticeWithin  = messages.Duration(15 * time.Second)
	noticeFor     = messages.Duration(24 * time.Hour) // a notification is given up this long after its event
)

// noticeRetries are the waiting times between the tries of one notice.
var noticeRetries = backoff.Backoff{First: 5 * time.Second, Last: 10 * time.Minute}

// notices sends notifications about jobs. Each notification is tried independently of the others. So a host that hangs
// delays only the notifications to this host.
type notices struct {
	*core
	more  bool
	wait  map[uint64]*attempt // notifications that were tried at least once
	hosts map[string]int      // by host: number of notifications that are being sent
	done  []book.NoticeOutcome
	busy  bool // a commit of outcomes is under way
	fails int  // failed commits in a row
	retry messages.Duration
	next  messages.Duration
}

// attempt describes the tries to send a notice. It also says whether the book already knows the outcome.
type attempt struct {
	flying bool
	told   bool // the outcome of the notification is known
	fails  int
	retry  messages.Duration
}

// step sends the notices that are due. It reads the queue when the queue has changed, an answer has come, or a retry is
// due.
func (n *notices) step(more bool) {
	n.more = n.more || more
	if !n.more && (n.next == 0 || n.now.Mono < n.next) {
		if n.next != 0 {
			n.wakeIn(n.next - n.now.Mono)
		}
		return
	}
	n.more, n.next = false, 0
	n.book.Read(func(b *book.Book) {
		there := map[uint64]bool{}
		for w := range b.EachNotice {
			there[w.ID] = true
			n.consider(w)
		}
		maps.DeleteFunc(n.wait, func(id uint64, _ *attempt) bool { return !there[id] })
	})
	n.commit()
	if n.next != 0 {
		n.wakeIn(n.next - n.now.Mono)
	}
}

// consider sends a notice if its time has come, and if its host does not have too many open requests.
func (n *notices) consider(w *book.Notice) {
	a := n.wait[w.ID]
	switch {
	case a == nil:
		a = &attempt{}
		n.wait[w.ID] = a
	case a.flying || a.told:
		return
	case n.now.Mono < a.retry:
		n.next = messages.Earlier(n.next, a.retry)
		return
	}
	host := hostOf(w.To)
	flying := 0
	for _, k := range n.hosts {
		flying += k
	}
	if flying >= noticesAtOnce || n.hosts[host] >= noticesToHost {
		return // the answer to another notice causes the next step
	}
	a.flying = true
	n.hosts[host]++
	sent := *w
	n.ask(Request{To: Notices, Body: &sent, Within: noticeWithin}, func(_ any, err error) {
		if n.hosts[host]--; n.hosts[host] == 0 {
			delete(n.hosts, host)
		}
		n.answered(&sent, a, err)
	})
}

func (n *notices) answered(w *book.Notice, a *attempt, err error) {
	a.flying, n.more = false, true
	kind := messages.KindOf(err)
	late := n.now.Wall.Sub(w.At) >= noticeFor
	switch {
	case err == nil:
		n.finish(w, a, "")
	case kind == messages.Invalid, kind == messages.PermissionDenied:
		n.finish(w, a, messages.Detail(err))
	case late:
		n.finish(w, a, "given up after a day: "+messages.Detail(err))
	default:
		a.fails++
		a.retry = n.now.Mono + messages.Duration(noticeRetries.Wait(a.fails, n.rng.Float64()))
		n.tell(Unsent{w.Job.Job, w.To, err, false})
	}
}

func (n *notices) finish(w *book.Notice, a *attempt, refused string) {
	a.told = true
	n.done = append(n.done, book.NoticeOutcome{Notice: w.ID, Refused: messages.Clip(refused, 256)})
	if refused != "" {
		n.tell(Unsent{w.Job.Job, w.To, messages.Errorf(messages.PermissionDenied, "%s", refused), true})
		return
	}
	n.tell(Sent{w.Job.Job})
}

// commit proposes the outcomes of notifications until they are committed.
func (n *notices) commit() {
	if n.busy || len(n.done) == 0 {
		return
	}
	if n.now.Mono < n.retry {
		n.next = messages.Earlier(n.next, n.retry)
		return
	}
	list := n.done
	n.busy, n.done = true, nil
	n.propose(&book.Command{Notified: &book.Notified{Outcomes: list}}, func(_ any, err error) {
		if n.busy, n.more = false, true; err == nil {
			n.fails, n.retry = 0, 0
			return
		}
		n.fails++
		n.done, n.retry = slices.Concat(list, n.done), n.retryAt(n.fails)
	})
}

// hostOf returns the host that receives a notification: the webhook's host, or "" for the mail relay.
func hostOf(to string) string {
	if !strings.Contains(to, "://") {
		return ""
	}
	if u, err := url.Parse(to); err == nil {
		return u.Host
	}
	return to
}
