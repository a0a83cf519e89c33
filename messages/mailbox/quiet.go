package mailbox

import (
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// QuietLog returns the log of a process that was given none. It writes one line to the standard error output when the
// process must end, and nothing else. Otherwise the process would end with status 1 and no message.
func QuietLog() *zap.Logger {
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig()), zapcore.Lock(os.Stderr), zap.FatalLevel))
}
