package controller

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/weirproxy/weir/config/settings"
	"github.com/weirproxy/weir/controller/certs"
)

// Main is weir-controller: it runs until ctx ends and then returns nil. An error says
// why it could not start, or what broke while it ran. Logs go to stderr; stdout is for
// --help, --version and --validate.
func Main(ctx context.Context, version string, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == "certs" {
		return certs.Main(ctx, args[1:], stdout, stderr)
	}
	cfg, cmd, groups, err := parse(args, os.Getenv)
	if err != nil {
		return err
	}
	switch {
	case cmd.help:
		settings.PrintHelp(stdout, introduction, groups)
		return nil
	case cmd.version:
		fmt.Fprintf(stdout, "weir-controller %s (%s)\n", versionOf(version), runtime.Version())
		return nil
	}
	log, err := settings.NewLogger(stderr, cfg.LogLevel, cfg.LogFormat)
	if err != nil {
		return err
	}
	log.LogAttrs(ctx, slog.LevelInfo, "Configuration", settings.Effective(groups)...)
	if err := cfg.Validate(); err != nil {
		return err
	}
	if cmd.validate {
		if err := cfg.check(log); err != nil {
			return err
		}
		fmt.Fprintln(stdout, "The configuration is valid.")
		return nil
	}
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	klog.SetSlogLogger(log)
	api, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	return run(ctx, cfg, api, log)
}

// clientQPS and clientBurst bound what is asked of the API server. After a change of
// a Gateway's policy each route below gets a new condition, one write after the other.
const (
	clientQPS   = 200
	clientBurst = 400
)

func run(ctx context.Context, cfg *Config, api *rest.Config, log *slog.Logger) error {
	api = rest.CopyConfig(api)
	api.QPS, api.Burst = clientQPS, clientBurst
	api.UserAgent = "weir-controller"
	mgr, err := newManager(cfg, api, log)
	if err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}

// versionOf is the version that the linker set, else what Go recorded.
func versionOf(linked string) string {
	recorded := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		recorded = info.Main.Version
	}
	return cmp.Or(linked, recorded, "unknown")
}
