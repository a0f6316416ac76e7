package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
)

// cli is what every command shares.
type cli struct {
	out, err io.Writer
	// output is text or json.
	output string

	adminAddress, tokenFile, caFile string
	timeout                         time.Duration
}

// run is weirctl with these arguments. What it returns is not printed yet.
func run(ctx context.Context, version string, args []string, stdout, stderr io.Writer) error {
	root := newRoot(&cli{out: stdout, err: stderr}, versionOf(version))
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root.ExecuteContext(ctx)
}

func newRoot(c *cli, version string) *cobra.Command {
	root := &cobra.Command{
		Use:   "weirctl",
		Short: "Ask and steer weir-extproc; check and explain policy files",
		Long: "weirctl asks and steers a running weir-extproc through its admin API, and checks and\n" +
			"explains policy files offline.",
		Version:           version,
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return c.check() },
	}
	f := root.PersistentFlags()
	f.StringVarP(&c.output, "output", "o", "text", "`format`: text or json")
	f.StringVar(&c.adminAddress, "admin-address", "127.0.0.1:9004",
		"`address` of the admin API: host:port, or a URL (https://…)")
	f.StringVar(&c.tokenFile, "token-file", "", "`file` with the admin token")
	f.StringVar(&c.caFile, "ca-file", "", "`file` with the CAs (PEM) of the admin API's certificate; means https")
	f.DurationVar(&c.timeout, "timeout", 10*time.Second, "how long to wait for an answer")
	root.AddCommand(newValidate(c), newStatus(c), newExplain(c), newEntries(c), newInvalidate(c), newWarm(c), newTop(c),
		newHealth(c))
	_ = root.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return root
}

func (c *cli) check() error {
	if c.output != "text" && c.output != "json" {
		return fmt.Errorf("--output %q: want text or json", c.output)
	}
	return nil
}

// versionOf returns the version that the linker set, else what Go recorded.
func versionOf(version string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		version = cmp.Or(version, info.Main.Version)
	}
	return cmp.Or(version, "unknown")
}
