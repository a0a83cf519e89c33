package serve

import (
	"io"

	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
)

type logging struct{ level, format string }

func (l *logging) flags(f *pflag.FlagSet) {
	f.StringVar(&l.level, "log-level", "info", "least `level` to log: debug, info, warn or error")
	f.StringVar(&l.format, "log-format", "auto", "`form` of the log: text, json, or auto: text on a terminal")
}

func (l *logging) logger(w io.Writer) (*zap.Logger, error) {
	level, err := zapcore.ParseLevel(l.level)
	if err != nil || level > zapcore.ErrorLevel {
		return nil, messages.Errorf(messages.Invalid, "--log-level %q: use debug, info, warn or error", l.level)
	}
	var encoder zapcore.Encoder
	switch {
	case l.format == "json", l.format == "auto" && !terminal.IsTerminal(w):
		encoder = zapcore.NewJSONEncoder(jsonLines())
	case l.format == "text", l.format == "auto":
		encoder = zapcore.NewConsoleEncoder(textLines())
	default:
		return nil, messages.Errorf(messages.Invalid, "--log-format %q: use text, json or auto", l.format)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), level)), nil
}

func jsonLines() zapcore.EncoderConfig {
	c := zap.NewProductionEncoderConfig()
	c.TimeKey, c.EncodeTime = "time", zapcore.RFC3339NanoTimeEncoder
	return c
}

func textLines() zapcore.EncoderConfig {
	c := zap.NewDevelopmentEncoderConfig()
	c.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
	c.ConsoleSeparator = "  "
	return c
}
