package admin

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap/zapcore"
)

// rootLogger is the name of the one logger that there is: all parts of the
// broker log at its level.
const rootLogger = "root"

// levels are Kafka's names of levels; zap has nothing below debug.
var levels = map[string]zapcore.Level{
	"TRACE": zapcore.DebugLevel, "DEBUG": zapcore.DebugLevel, "INFO": zapcore.InfoLevel,
	"WARN": zapcore.WarnLevel, "ERROR": zapcore.ErrorLevel, "FATAL": zapcore.FatalLevel,
}

// describeLoggers lists the loggers and their levels.
func (h *Handlers) describeLoggers() []kmsg.DescribeConfigsResponseResourceConfig {
	e := kmsg.NewDescribeConfigsResponseResourceConfig()
	level := h.opts.LogLevel.Level().CapitalString()
	e.Name, e.Value, e.Source, e.Documentation = rootLogger, &level, kmsg.ConfigSourceDynamicBrokerLoggerConfig, new(string)
	return []kmsg.DescribeConfigsResponseResourceConfig{e}
}

// alterLoggers sets levels: all of them or, after an error, none.
func (h *Handlers) alterLoggers(configs []kmsg.IncrementalAlterConfigsRequestResourceConfig, validateOnly bool) error {
	next := h.opts.LogLevel.Level()
	for _, e := range configs {
		level, err := changeOfLevel(e)
		if err != nil {
			return err
		}
		next = level
	}
	if !validateOnly {
		h.opts.LogLevel.SetLevel(next)
	}
	return nil
}

func changeOfLevel(e kmsg.IncrementalAlterConfigsRequestResourceConfig) (zapcore.Level, error) {
	switch e.Op {
	case kmsg.IncrementalAlterConfigOpSet:
		if e.Name != rootLogger {
			break
		}
		level, ok := levels[strings.ToUpper(strings.TrimSpace(*e.Value))]
		if !ok {
			return 0, refuse(kerr.InvalidConfig, "log level %q is unknown; levels are TRACE, DEBUG, INFO, WARN, ERROR, FATAL", clip(*e.Value))
		}
		return level, nil
	case kmsg.IncrementalAlterConfigOpDelete:
		if e.Name == rootLogger {
			return 0, refuse(kerr.InvalidRequest, "the level of the root logger can be set, not removed")
		}
	default:
		return 0, refuse(kerr.InvalidRequest, "a logger's level can be set or removed, nothing else")
	}
	return 0, refuse(kerr.InvalidConfig, "logger %q does not exist; there is one, %s", clip(e.Name), rootLogger)
}
