package serve

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/weirproxy/weir/extproc/metrics"
)

// buildOf says which build this is: the version that the linker set, else what
// Go recorded.
func buildOf(version string) metrics.Build {
	b := metrics.Build{Version: version, Revision: "unknown", GoVersion: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if ok {
		b.Version = cmp.Or(version, info.Main.Version)
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Revision = s.Value
			}
		}
	}
	b.Version = cmp.Or(b.Version, "unknown")
	return b
}
