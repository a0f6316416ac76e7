package policydir

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/weirproxy/weir/cachepolicy"
)

// dataLink is the symbolic link through which a ConfigMap mount changes all its
// files at once.
const dataLink = "..data"

// Load reads the policy files of a directory, *.yaml and *.yml, not those of its
// subdirectories, nor those whose name begins with a dot. It returns what
// LoadFiles does. A Kubernetes mount is read as one: all files from one
// generation of it.
func Load(dir string) (*cachepolicy.Set, []FileError) {
	return compile(readDir(dir))
}

func readDir(dir string) []source {
	const attempts = 3 // mounts change once a minute, not while we read three times
	for attempt := 1; ; attempt++ {
		before, _ := os.Readlink(filepath.Join(dir, dataLink))
		sources := readDirOnce(dir, before)
		after, _ := os.Readlink(filepath.Join(dir, dataLink))
		if before == after || attempt == attempts {
			return sources
		}
	}
}

// readDirOnce reads the directory; generation is where its data link leads,
// empty if it has none.
func readDirOnce(dir, generation string) []source {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return []source{{name: dir, err: reason(err)}}
	}
	if generation != "" && !filepath.IsAbs(generation) {
		generation = filepath.Join(dir, generation)
	}
	var paths, names []string
	for _, entry := range entries {
		if !isPolicyFile(entry) {
			continue
		}
		name := filepath.Join(dir, entry.Name())
		path := name
		if link, err := os.Readlink(name); err == nil && generation != "" {
			if behind, ok := strings.CutPrefix(link, dataLink+"/"); ok {
				path = filepath.Join(generation, behind)
			}
		}
		names, paths = append(names, name), append(paths, path)
	}
	return read(paths, names)
}

func isPolicyFile(entry os.DirEntry) bool {
	name := entry.Name()
	extension := filepath.Ext(name)
	return !entry.IsDir() && !strings.HasPrefix(name, ".") && (extension == ".yaml" || extension == ".yml")
}
