package policydir

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzDecode feeds whole files: whatever they hold, the answer is a set or
// faults, each with the file and a line of it.
func FuzzDecode(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*", "testdata/bad/*.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		set, errs := compile([]source{{name: "fuzz.yaml", data: data}})
		if (set == nil) != (len(errs) > 0) {
			t.Fatalf("set %v with faults %v", set, errs)
		}
		for _, e := range errs {
			if e.File != "fuzz.yaml" || e.Line < 1 || e.Reason == "" {
				t.Fatalf("fault %+v", e)
			}
		}
	})
}
