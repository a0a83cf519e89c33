package bus

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Bounded is a log that takes so many lines of one text in a second, and drops the others:
// for what clients can cause, who must not fill the disk.
func Bounded(log *zap.Logger, lines int) *zap.Logger {
	return log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(c, time.Second, lines, 0)
	}))
}
