package bus

import (
	"context"
	"strconv"
	"strings"
	"sync"
)

// watch ends requests that will not be answered: the connection was lost, or the server refused
// to carry them. NATS reports such a refusal separately from the request, and names its
// subject.
type watch struct {
	mu      sync.Mutex
	waiting map[*watched]struct{}
}

// watched is a request under way.
type watched struct {
	subject string
	cancel  context.CancelCauseFunc
}

// begin returns a context that is cancelled, with a *messages.Error as its cause, when a
// request on subject will not be answered; and a function that stops watching.
func (w *watch) begin(ctx context.Context, subject string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	r := &watched{watchKey(subject), cancel}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == nil {
		w.waiting = make(map[*watched]struct{})
	}
	w.waiting[r] = struct{}{}
	return ctx, func() {
		w.mu.Lock()
		delete(w.waiting, r)
		w.mu.Unlock()
		cancel(nil)
	}
}

// watchKey maps all subjects of the stream API to one key, because a caller does not know which
// of them its operation uses.
func watchKey(subject string) string {
	if strings.HasPrefix(subject, "$JS.") {
		return "$JS"
	}
	return subject
}

// denied cancels the requests that a server's report is about: all, if this connection may not
// listen to replies.
func (w *watch) denied(report error) {
	subject := deniedSubject(report)
	listening := strings.Contains(report.Error(), "Violation for Subscription")
	w.mu.Lock()
	defer w.mu.Unlock()
	for r := range w.waiting {
		if listening && strings.HasPrefix(subject, "_INBOX") {
			r.cancel(deniedListen(subject))
		} else if r.subject == watchKey(subject) {
			r.cancel(deniedSend(subject))
		}
	}
}

func (w *watch) end(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for r := range w.waiting {
		r.cancel(why)
	}
}

// deniedSubject returns the subject in a report of a permissions violation: its first quoted
// text.
func deniedSubject(report error) string {
	text := report.Error()
	start := strings.IndexByte(text, '"')
	if start < 0 {
		return ""
	}
	quoted, err := strconv.QuotedPrefix(text[start:])
	if err != nil {
		return ""
	}
	subject, _ := strconv.Unquote(quoted)
	return subject
}
