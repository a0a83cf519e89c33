package mailbox

import (
	"fmt"
	"io"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// raftLog writes Raft's log to zap. It lowers the severity by one step, because most messages that Raft calls errors
// are only about a peer that does not answer for a while.
type raftLog struct{ log *zap.SugaredLogger }

func newRaftLog(l *zap.Logger) hclog.Logger {
	i := hclog.NewInterceptLogger(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Off})
	i.RegisterSink(raftLog{l.WithOptions(zap.AddCallerSkip(3)).Sugar()})
	return i
}

func (r raftLog) Accept(_ string, l hclog.Level, msg string, args ...any) {
	if level := zapLevel(l); r.log.Level().Enabled(level) {
		r.log.Logw(level, msg, spelled(args)...)
	}
}

func zapLevel(l hclog.Level) zapcore.Level {
	switch l {
	case hclog.Error:
		return zapcore.WarnLevel
	case hclog.Warn:
		return zapcore.InfoLevel
	default:
		return zapcore.DebugLevel
	}
}

// spelled formats the values of type hclog.Format. The package hclog passes these values to the logger without
// formatting them.
func spelled(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			a = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
		out[i] = a
	}
	return out
}
