package cluster

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

const (
	cgroupMount = "/sys/fs/cgroup"
	// cgroupRoot is the cgroup that all pods are below; the kubelet's cgroupRoot.
	cgroupRoot = "weir-cluster"
)

// makeCgroups makes the cgroup that the kubelet expects, in each hierarchy.
func makeCgroups() error {
	roots, err := cgroupRoots()
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := os.MkdirAll(root, 0o755); err != nil {
			return fmt.Errorf("make a cgroup: %w", err)
		}
		if filepath.Base(filepath.Dir(root)) == "cpuset" {
			if err := inheritCPUSet(root); err != nil {
				return err
			}
		}
	}
	return nil
}

// cgroupRoots are the places of cgroupRoot: one with cgroup v2, one per hierarchy with v1.
func cgroupRoots() ([]string, error) {
	unified := filepath.Join(cgroupMount, "cgroup.controllers")
	if _, err := os.Stat(unified); err == nil {
		enable := []byte("+cpuset +cpu +io +memory +pids")
		if err := os.WriteFile(filepath.Join(cgroupMount, "cgroup.subtree_control"), enable, 0o644); err != nil {
			return nil, fmt.Errorf("enable the controllers of cgroup v2: %w", err)
		}
		return []string{filepath.Join(cgroupMount, cgroupRoot)}, nil
	}
	hierarchies, err := os.ReadDir(cgroupMount)
	if err != nil {
		return nil, fmt.Errorf("find the cgroup hierarchies: %w", err)
	}
	var roots []string
	for _, h := range hierarchies {
		if h.IsDir() { // the links among them (cpu -> cpu,cpuacct) lead to folders that are there too
			roots = append(roots, filepath.Join(cgroupMount, h.Name(), cgroupRoot))
		}
	}
	return roots, nil
}

// inheritCPUSet gives a cgroup of the v1 cpuset hierarchy what its parent has: it starts with nothing, and then takes
// no process.
func inheritCPUSet(root string) error {
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(filepath.Dir(root), name))
		if err == nil {
			err = os.WriteFile(filepath.Join(root, name), value, 0o644)
		}
		if err != nil {
			return fmt.Errorf("pass on %s: %w", name, err)
		}
	}
	return nil
}

// removeCgroups removes the cgroups of a cluster whose processes are gone; those in use stay.
func removeCgroups() {
	roots, _ := filepath.Glob(filepath.Join(cgroupMount, "*", cgroupRoot))
	for _, root := range append(roots, filepath.Join(cgroupMount, cgroupRoot)) {
		var dirs []string
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		for _, dir := range slices.Backward(dirs) {
			_ = os.Remove(dir)
		}
	}
}
