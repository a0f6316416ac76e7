package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/weirproxy/weir/config/settings"
	"github.com/weirproxy/weir/extproc/metrics"
)

// Main is weir-extproc: it serves until ctx ends, then drains and returns nil.
// An error says why it could not start, or what broke while it served. Logs go
// to stderr; stdout is for --help, --version and --validate.
func Main(ctx context.Context, version string, args []string, stdout, stderr io.Writer) error {
	return start(ctx, version, args, stdout, stderr, assemble)
}

func start(ctx context.Context, version string, args []string, stdout, stderr io.Writer, assemble assembler) error {
	cfg, cmd, groups, err := parse(args)
	if err != nil {
		return err
	}
	build := buildOf(version)
	switch {
	case cmd.help:
		settings.PrintHelp(stdout, introduction, groups)
		return nil
	case cmd.version:
		fmt.Fprintf(stdout, "weir-extproc %s (%s, %s)\n", build.Version, build.Revision, build.GoVersion)
		return nil
	}
	log := newLogger(stderr, cfg)
	log.LogAttrs(ctx, slog.LevelInfo, "Configuration", settings.Effective(groups)...)
	if err := cfg.Validate(); err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	env := environment{cfg: cfg, build: build, log: log, registry: registry, metrics: metrics.New(registry, build),
		ready: newReadiness(checkPolicies, checkWarmUp, checkServing), started: time.Now()}
	if env.memory, err = limitMemory(cfg, log); err != nil {
		return err
	}
	if cmd.validate {
		if err := check(ctx, env, assemble); err != nil {
			return err
		}
		fmt.Fprintln(stdout, "The configuration and the policies are valid.")
		return nil
	}
	return run(ctx, env, assemble)
}

// check makes everything a process serves with, but binds no port.
func check(ctx context.Context, env environment, assemble assembler) error {
	if _, err := newTransport(env); err != nil {
		return err
	}
	p, err := assemble(ctx, env)
	if err != nil {
		return err
	}
	return p.close()
}
