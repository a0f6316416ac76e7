package settings

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3" //nolint:depguard // its nodes know their lines, which sigs.k8s.io/yaml's do not
)

// maxFileBytes bounds the configuration file.
const maxFileBytes = 1 << 20

// ReadFile sets the flags that the YAML file at path names and that the
// command line did not set. It is a mapping of flag names to scalars. Every
// fault is reported, with its line.
func ReadFile(path string, fs *pflag.FlagSet) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	if len(data) > maxFileBytes {
		return fmt.Errorf("--config: %s is larger than %d bytes", path, maxFileBytes)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return fmt.Errorf("--config: %s: %w", path, err)
	}
	if len(doc.Content) == 0 {
		return nil // an empty file
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return fmt.Errorf("%s:%d: want lines of the form name: value", path, root.Line)
	}
	var faults []error
	seen := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		name, value := root.Content[i], root.Content[i+1]
		err := setFromFile(fs, name.Value, value)
		if first, twice := seen[name.Value]; twice {
			err = fmt.Errorf("is set in line %d already", first)
		}
		seen[name.Value] = name.Line
		if err != nil {
			faults = append(faults, fmt.Errorf("%s:%d: %s: %w", path, name.Line, name.Value, err))
		}
	}
	return errors.Join(faults...)
}

func setFromFile(fs *pflag.FlagSet, name string, value *yaml.Node) error {
	flag := fs.Lookup(name)
	if flag == nil {
		return errors.New("is no field; the names are those of the flags, see --help")
	}
	if value.Kind != yaml.ScalarNode || value.Tag == "!!null" {
		return errors.New("want a string, a number, true or false")
	}
	if flag.Changed {
		return nil // the command line wins
	}
	if err := flag.Value.Set(value.Value); err != nil {
		return fmt.Errorf("%q: %w", value.Value, err)
	}
	return nil
}
