// Package settings reads the configuration of weir's processes: one flag set is the
// only description of a setting, from which the command line, the YAML of --config,
// --help, the reference and the log line at start are made.
package settings
