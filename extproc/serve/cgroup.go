package serve

import (
	"fmt"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// availableMemory returns the bytes of memory that this process may use: the
// lowest limit of its cgroup and those above (v2, then v1), else the machine's
// memory. root is the root of the file system.
func availableMemory(root fs.FS) (bytes int64, limited bool, err error) {
	physical, err := physicalMemory(root)
	if err != nil {
		return 0, false, err
	}
	limit := cgroupLimit(root)
	if limit < physical {
		return limit, true, nil
	}
	return physical, false, nil
}

func physicalMemory(root fs.FS) (int64, error) {
	data, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("the machine's memory: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("the machine's memory: %w", err)
			}
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("the machine's memory: no MemTotal in /proc/meminfo")
}

// cgroupLimit returns the lowest memory limit on the way from this process's
// cgroup to the root, or MaxInt64. /proc/self/cgroup has a line "0::PATH" for
// v2 and "N:controllers:PATH" for each hierarchy of v1.
func cgroupLimit(root fs.FS) int64 {
	limit := int64(math.MaxInt64)
	data, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return limit // no cgroups here
	}
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		if parts[1] != "" {
			if !strings.Contains(","+parts[1]+",", ",memory,") {
				continue
			}
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		limit = min(limit, lowestLimit(root, mount, parts[2], file))
	}
	return limit
}

// lowestLimit reads the limit of dir and of every directory above it, up to the
// mount. A directory that is not there is passed over: in a container the path
// may be the host's, and only the mount itself is visible.
func lowestLimit(root fs.FS, mount, dir, file string) int64 {
	limit := int64(math.MaxInt64)
	for dir = path.Clean("/" + dir); ; dir = path.Dir(dir) {
		if data, err := fs.ReadFile(root, path.Join(mount, dir, file)); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil { // else "max"
				limit = min(limit, n)
			}
		}
		if dir == "/" {
			return limit
		}
	}
}
