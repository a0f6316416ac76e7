package serve

import "github.com/weirproxy/weir/config/settings"

// parse reads the command line and the file it names. What comes back is not
// validated yet.
func parse(args []string) (*Config, *command, []settings.Group, error) {
	cfg, cmd := defaultConfig(), &command{}
	groups := flagGroups(cfg, cmd)
	if err := settings.Parse(groups, args); err != nil {
		return nil, nil, nil, err
	}
	if cmd.help || cmd.version || cmd.configFile == "" {
		return cfg, cmd, groups, nil
	}
	if err := settings.ReadFile(cmd.configFile, settings.Configurable(groups)); err != nil {
		return nil, nil, nil, err
	}
	return cfg, cmd, groups, nil
}
