package bus

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Bounded returns a log that takes at most lines equal lines in a second, and drops the others:
// clients must not be able to fill the disk with the lines they cause.
func Bounded(log *zap.Logger, lines int) *zap.Logger {
	return log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(c, time.Second, lines, 0)
	}))
}
