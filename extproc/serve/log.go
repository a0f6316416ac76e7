package serve

import (
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/pflag"
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

// effective returns the configuration as log attributes, one per flag. No flag
// carries a secret: secrets come in files, and only the file's name is shown.
func effective(groups []group) []slog.Attr {
	var attrs []slog.Attr
	configurable(groups).VisitAll(func(f *pflag.Flag) {
		attrs = append(attrs, slog.String(camelCase(f.Name), f.Value.String()))
	})
	return attrs
}

// camelCase turns a flag's name into a log key.
func camelCase(name string) string {
	words := strings.Split(name, "-")
	for i, w := range words[1:] {
		words[i+1] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "")
}
