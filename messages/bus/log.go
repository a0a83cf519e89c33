package bus

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Bounded returns a log that writes equal lines at most N times a second, where N is the argument lines, and drops the
// others. Without a bound, clients could fill the disk with log lines.
func Bounded(log *zap.Logger, lines int) *zap.Logger {
	return log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(c, time.Second, lines, 0)
	}))
}
