package mailbox

import (
	"fmt"
	"io"
	"log"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// raftLog gives Raft's log to zap, one level quieter: what it calls an error is
// mostly a peer that does not answer for a while. This package says itself what
// an operator needs to know.
type raftLog struct {
	log  *zap.SugaredLogger
	name string
	with []any
}

func newRaftLog(l *zap.Logger) hclog.Logger {
	return &raftLog{log: l.WithOptions(zap.AddCallerSkip(2)).Sugar()}
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

// Log writes a message with its key and value pairs.
func (r *raftLog) Log(l hclog.Level, msg string, args ...any) {
	if l != hclog.Off && r.enabled(l) {
		r.log.Logw(zapLevel(l), msg, spelled(args)...)
	}
}

// spelled carries out the formatting that hclog leaves to the logger.
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

func (r *raftLog) enabled(l hclog.Level) bool { return r.log.Level().Enabled(zapLevel(l)) }

// Trace and the methods below are hclog's names for the levels.
func (r *raftLog) Trace(msg string, args ...any) { r.Log(hclog.Trace, msg, args...) }
func (r *raftLog) Debug(msg string, args ...any) { r.Log(hclog.Debug, msg, args...) }
func (r *raftLog) Info(msg string, args ...any)  { r.Log(hclog.Info, msg, args...) }
func (r *raftLog) Warn(msg string, args ...any)  { r.Log(hclog.Warn, msg, args...) }
func (r *raftLog) Error(msg string, args ...any) { r.Log(hclog.Error, msg, args...) }

// IsTrace and the methods below say which levels are written.
func (r *raftLog) IsTrace() bool { return r.enabled(hclog.Trace) }
func (r *raftLog) IsDebug() bool { return r.enabled(hclog.Debug) }
func (r *raftLog) IsInfo() bool  { return r.enabled(hclog.Info) }
func (r *raftLog) IsWarn() bool  { return r.enabled(hclog.Warn) }
func (r *raftLog) IsError() bool { return r.enabled(hclog.Error) }

// ImpliedArgs returns what With has added.
func (r *raftLog) ImpliedArgs() []any { return r.with }

// With returns a logger that adds args to each message.
func (r *raftLog) With(args ...any) hclog.Logger {
	with := append(append([]any{}, r.with...), args...)
	return &raftLog{log: r.log.With(args...), name: r.name, with: with}
}

// Name is the logger's name.
func (r *raftLog) Name() string { return r.name }

// Named returns a logger with a longer name.
func (r *raftLog) Named(name string) hclog.Logger {
	if r.name != "" {
		name = r.name + "." + name
	}
	return r.ResetNamed(name)
}

// ResetNamed returns a logger of another name.
func (r *raftLog) ResetNamed(name string) hclog.Logger {
	return &raftLog{log: r.log, name: name, with: r.with}
}

// SetLevel does nothing: the level is zap's.
func (r *raftLog) SetLevel(hclog.Level) {}

// GetLevel is the finest level that is written.
func (r *raftLog) GetLevel() hclog.Level {
	for _, l := range []hclog.Level{hclog.Debug, hclog.Warn, hclog.Error} {
		if r.enabled(l) {
			return l
		}
	}
	return hclog.Off
}

// StandardLogger writes to the same place.
func (r *raftLog) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return zap.NewStdLog(r.log.Desugar())
}

// StandardWriter writes to the same place.
func (r *raftLog) StandardWriter(o *hclog.StandardLoggerOptions) io.Writer {
	return r.StandardLogger(o).Writer()
}
