package bus

import (
	"context"
	"strconv"
	"strings"
	"sync"
)

// watch tells requests under way that they will not be answered: the server
// refused to carry them, which NATS reports apart from the request, naming its
// subject; or the connection is lost.
type watch struct {
	mu      sync.Mutex
	waiting map[string][]*context.CancelCauseFunc
}

// begin returns a context that is cancelled, with a *messages.Error as its
// cause, when a request on subject will not be answered; and what ends the
// watching.
func (w *watch) begin(ctx context.Context, subject string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	key := watchKey(subject)
	w.mu.Lock()
	if w.waiting == nil {
		w.waiting = make(map[string][]*context.CancelCauseFunc)
	}
	w.waiting[key] = append(w.waiting[key], &cancel)
	w.mu.Unlock()
	return ctx, func() {
		w.end(key, &cancel)
		cancel(nil)
	}
}

func (w *watch) end(key string, cancel *context.CancelCauseFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.waiting[key]
	for i, c := range list {
		if c == cancel {
			list[i] = list[len(list)-1]
			list[len(list)-1] = nil
			w.waiting[key] = list[:len(list)-1]
			break
		}
	}
	if len(w.waiting[key]) == 0 {
		delete(w.waiting, key)
	}
}

// watchKey brings the many subjects of the stream API under one key: which of
// them an operation needs is not ours to know.
func watchKey(subject string) string {
	if strings.HasPrefix(subject, "$JS.") {
		return "$JS"
	}
	return subject
}

// denied cancels the requests that a report of the server is about. If it is
// about listening to replies, that is all of them.
func (w *watch) denied(report error) {
	subject := deniedSubject(report)
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.HasPrefix(subject, "_INBOX") {
		for _, list := range w.waiting {
			cancelAll(list, deniedListen(subject))
		}
		return
	}
	cancelAll(w.waiting[watchKey(subject)], deniedSend(subject))
}

// lost cancels all requests: the connection they were sent on is gone, and
// what was answered on it may be lost with it.
func (w *watch) lost() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, list := range w.waiting {
		cancelAll(list, connectionLost())
	}
}

func cancelAll(list []*context.CancelCauseFunc, cause error) {
	for _, cancel := range list {
		(*cancel)(cause)
	}
}

// deniedSubject returns the subject that a permissions violation names: the
// first quoted text of the report.
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
