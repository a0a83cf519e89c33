package embedded

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

// natsLog passes the server's log lines on. Its notices are details here. Each
// refusal of what a client tries is a line of its own, so the lines of a second
// are bounded: a client must not fill the disk by being refused.
type natsLog struct {
	log *zap.SugaredLogger

	mu      sync.Mutex
	second  time.Time
	lines   int // of this second
	dropped int
}

// maxLines bounds the warnings and errors of one second.
const maxLines = 10

// admit says whether another line may be written, and how many were dropped
// since the last one that was.
func (l *natsLog) admit(now time.Time) (ok bool, dropped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.second) >= time.Second {
		l.second, l.lines = now, 0
	}
	if l.lines++; l.lines > maxLines {
		l.dropped++
		return false, 0
	}
	dropped, l.dropped = l.dropped, 0
	return true, dropped
}

func (l *natsLog) bounded(write func(string, ...any), format string, v []any) {
	ok, dropped := l.admit(time.Now())
	if dropped > 0 {
		l.log.Warnf("%d lines of the server were left out", dropped)
	}
	if ok {
		write(format, v...)
	}
}

func (l *natsLog) Noticef(format string, v ...any) { l.log.Debugf(format, v...) }
func (l *natsLog) Debugf(format string, v ...any)  { l.log.Debugf(format, v...) }
func (l *natsLog) Tracef(format string, v ...any)  { l.log.Debugf(format, v...) }
func (l *natsLog) Warnf(format string, v ...any)   { l.bounded(l.log.Warnf, format, v) }

// Errorf warns: what the server calls an error is most often a client's.
func (l *natsLog) Errorf(format string, v ...any) { l.bounded(l.log.Warnf, format, v) }

// Fatalf does not end the process: the server that cannot go on shuts down.
func (l *natsLog) Fatalf(format string, v ...any) { l.log.Errorf(format, v...) }
