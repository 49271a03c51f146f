package main

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Log lines that repeat: so many alike pass within the window, the next one after
// it says how many were left out.
const (
	repeatsAllowed = 10
	repeatWindow   = time.Minute
)

// newLogger writes to standard error: for people on a terminal, else JSON.
func newLogger(c *console, format string, level zap.AtomicLevel) (*zap.Logger, error) {
	var encoder zapcore.Encoder
	switch {
	case format == "console" || format == "auto" && c.errTTY:
		ec := zap.NewDevelopmentEncoderConfig()
		ec.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		ec.EncodeLevel = zapcore.CapitalLevelEncoder
		ec.CallerKey = ""
		ec.StacktraceKey = ""
		ec.ConsoleSeparator = "  "
		encoder = zapcore.NewConsoleEncoder(ec)
	case format == "json" || format == "auto":
		ec := zap.NewProductionEncoderConfig()
		ec.EncodeTime = zapcore.RFC3339NanoTimeEncoder
		ec.TimeKey = "time"
		ec.StacktraceKey = ""
		encoder = zapcore.NewJSONEncoder(ec)
	default:
		return nil, usage("Use auto, console or json.", "--log-format %q is unknown", format)
	}
	core := zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(c.err)), level)
	return zap.New(newThrottle(core, repeatsAllowed, repeatWindow)), nil
}

func parseLevel(s string) (zap.AtomicLevel, error) {
	level, err := zap.ParseAtomicLevel(s)
	if err != nil {
		return level, usage("Use debug, info, warn or error.", "--log-level %q is unknown", s)
	}
	return level, nil
}
