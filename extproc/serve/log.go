package serve

import (
	"io"
	"log/slog"
)

func parseLevel(s string) (slog.Level, error) {
	var level slog.Level
	err := level.UnmarshalText([]byte(s))
	return level, err
}

// newLogger makes the process's logger. Level and format were validated; until
// then what is not known falls back to info and text.
func newLogger(w io.Writer, cfg *Config) *slog.Logger {
	level, err := parseLevel(cfg.LogLevel)
	if err != nil {
		level = slog.LevelInfo
	}
	o := &slog.HandlerOptions{Level: level}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
