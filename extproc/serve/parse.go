package serve

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weirproxy/weir/config/settings"
)

// parse reads the command line and the file it names. What comes back is not
// validated yet.
func parse(args []string) (*Config, *command, []group, error) {
	cfg, cmd := defaultConfig(), &command{}
	groups := flagGroups(cfg, cmd)
	all := newFlagSet()
	all.SetOutput(io.Discard) // the error is returned
	for _, g := range groups {
		all.AddFlagSet(g.flags)
	}
	if err := all.Parse(args); err != nil {
		return nil, nil, nil, fmt.Errorf("%w; see --help", err)
	}
	if all.NArg() > 0 {
		return nil, nil, nil, fmt.Errorf("unexpected argument %q; see --help", strings.Join(all.Args(), " "))
	}
	if cmd.help || cmd.version || cmd.configFile == "" {
		return cfg, cmd, groups, nil
	}
	if err := settings.ReadFile(cmd.configFile, configurable(groups)); err != nil {
		return nil, nil, nil, err
	}
	return cfg, cmd, groups, nil
}

// configurable returns the flags that a configuration file may set: all but the
// group General.
func configurable(groups []group) *pflag.FlagSet {
	fs := newFlagSet()
	for _, g := range groups[:len(groups)-1] {
		fs.AddFlagSet(g.flags)
	}
	return fs
}
