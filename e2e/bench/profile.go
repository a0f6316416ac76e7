package bench

import (
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/weirproxy/weir/e2e/harness"
)

// Profile writes CPU profiles of weir under hits and under pass-throughs of 1 KiB into dir, for go tool pprof.
func Profile(tb harness.TB, s Scale, dir string) {
	tb.Helper()
	b := newBench(tb, s)
	f := b.startFloorStage(tb)
	for _, path := range []string{hitPath, passPath} {
		expect(tb, f.stage.url("weir", path), f.size)
		done := make(chan error, 1)
		go func() { done <- saveProfile(f.weir.AdminAddress, filepath.Join(dir, filepath.Base(path)+".pprof")) }()
		for ended := false; !ended; {
			f.subject(b.scale, "weir", path, f.servers["weir"]).load.run(tb)
			select {
			case err := <-done:
				if err != nil {
					tb.Fatalf("profile weir: %v", err)
				}
				ended = true
			default:
			}
		}
	}
}

func saveProfile(admin, path string) error {
	resp, err := http.Get("http://" + admin + "/debug/pprof/profile?seconds=20")
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	profile, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(path, profile, 0o644)
}
