package bus

import (
	"context"
	"strconv"
	"strings"
	"sync"
)

// watch ends requests that will not get an answer, because the connection was lost or the server refused the request.
// NATS reports such a refusal separately, and names only the subject.
type watch struct {
	mu      sync.Mutex
	waiting map[*watched]struct{}
}

// watched is a request under way.
type watched struct {
	subject string
	cancel  context.CancelCauseFunc
}

// begin starts to watch a request. If it becomes known that the request gets no answer, the returned context is
// cancelled, with a *messages.Error as cause. The returned function stops the watching.
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

// watchKey returns the key under which requests on a subject wait for an error report of the server. All subjects of
// the stream API have one key, because a caller does not know which of them its operation uses.
func watchKey(subject string) string {
	if strings.HasPrefix(subject, "$JS.") {
		return "$JS"
	}
	return subject
}

// denied handles the report of a server that it refused a message. It cancels the requests on the subject in the
// report. If the server refused the subscription to replies, no request can get an answer, and denied cancels all
// requests.
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

// deniedSubject returns the subject in a server's report that a message was not permitted. This is the first quoted
// text of the report.
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
