package settings

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/pflag"
)

// Group is a titled part of the flags, as --help and the reference show them.
type Group struct {
	Title string
	Flags *pflag.FlagSet
	// CommandLineOnly flags cannot be set by the file, and are no part of what
	// Effective returns.
	CommandLineOnly bool
}

// NewFlagSet returns an empty set that keeps the order in which flags are added.
func NewFlagSet() *pflag.FlagSet {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.SortFlags = false
	return fs
}

// Parse sets the flags of the groups from the command line. An argument that is no
// flag is an error.
func Parse(groups []Group, args []string) error {
	all := NewFlagSet()
	all.SetOutput(io.Discard) // the error is returned
	for _, g := range groups {
		all.AddFlagSet(g.Flags)
	}
	if err := all.Parse(args); err != nil {
		return fmt.Errorf("%w; see --help", err)
	}
	if all.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; see --help", strings.Join(all.Args(), " "))
	}
	return nil
}

// Configurable returns the flags that a file may set.
func Configurable(groups []Group) *pflag.FlagSet {
	fs := NewFlagSet()
	for _, g := range groups {
		if !g.CommandLineOnly {
			fs.AddFlagSet(g.Flags)
		}
	}
	return fs
}

// Effective returns the values of the configurable flags as log attributes, one per
// flag. No flag of weir carries a secret: secrets come in files, and only the file's
// name is shown.
func Effective(groups []Group) []slog.Attr {
	var attrs []slog.Attr
	Configurable(groups).VisitAll(func(f *pflag.Flag) {
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

// PrintHelp writes the introduction and, group by group, the flags.
func PrintHelp(w io.Writer, introduction string, groups []Group) {
	fmt.Fprint(w, introduction)
	for _, g := range groups {
		fmt.Fprintf(w, "\n%s:\n%s", g.Title, g.Flags.FlagUsagesWrapped(100))
	}
}

// Reference writes the flags as tables of Markdown, a section per group.
func Reference(w io.Writer, groups []Group) {
	for _, g := range groups {
		fmt.Fprintf(w, "\n## %s\n\n| flag | default | meaning |\n| --- | --- | --- |\n", g.Title)
		g.Flags.VisitAll(func(f *pflag.Flag) {
			_, usage := pflag.UnquoteUsage(f)
			value := "–"
			if f.DefValue != "" && f.DefValue != "[]" {
				value = "`" + f.DefValue + "`"
			}
			fmt.Fprintf(w, "| `--%s` | %s | %s |\n", f.Name, value, usage)
		})
	}
}

// NewLogger returns a logger of a level (debug, info, warn or error) and a format
// (text or json). What is not known is an error.
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level: want debug, info, warn or error: %w", err)
	}
	options := &slog.HandlerOptions{Level: l}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, errors.New("--log-format: want text or json")
}
