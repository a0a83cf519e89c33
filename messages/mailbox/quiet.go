package mailbox

import (
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// QuietLog returns the log of a process that was given none. It writes one line to the standard error output when the
// process must end, and nothing else. Without it, such a process ended with status 1 and without a word.
func QuietLog() *zap.Logger {
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig()), zapcore.Lock(os.Stderr), zap.FatalLevel))
}
