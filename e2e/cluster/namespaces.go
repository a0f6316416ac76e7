package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// nodeName is the node's name.
	nodeName = "node"
	// NodeIP is the node's address: what listens on it can be reached from pods, and so can the NodePorts of Services.
	NodeIP = "10.89.0.1"

	podCIDR       = "10.244.0.0/24"
	serviceCIDR   = "10.96.0.0/24"
	apiServerIP   = "10.96.0.1" // the first of serviceCIDR: the Service "kubernetes"
	dnsIP         = "10.96.0.10"
	clusterDomain = "cluster.local"
)

// kubeletTunables returns what the kubelet sets for the whole machine, to these values. It finds them so already: in
// files mounted over the real ones.
func kubeletTunables() map[string]string {
	return map[string]string{
		"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
		"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
	}
}

// arrangeNamespaces gives the process inside, and all that come after it, their own view of the machine.
func arrangeNamespaces() error {
	if err := os.Unsetenv(insideVar); err != nil {
		return err
	}
	steps := []func() error{arrangeMounts, hideTunables, arrangeNetwork, makeCgroups}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// arrangeMounts hides the places that container programs write to, whatever their configuration says.
func arrangeMounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	for _, dir := range []string{stateDir, "/run", "/var/lib/cni", "/var/log"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755"); err != nil {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	// Pods may ask for mounts that propagate, within this namespace.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("make mounts shared: %w", err)
	}
	return nil
}

func hideTunables() error {
	for name, value := range kubeletTunables() {
		file := filepath.Join(stateDir, "sysctl."+strings.ReplaceAll(name, "/", "."))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := unix.Mount(file, filepath.Join("/proc/sys", name), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("hide %s: %w", name, err)
		}
	}
	return nil
}

// arrangeNetwork gives the network namespace its only interface besides the bridge of the pods: lo, which also holds
// the node's address.
func arrangeNetwork() error {
	commands := []string{
		"ip link set lo up",
		"ip address add " + NodeIP + "/32 dev lo",
		"ip route add " + serviceCIDR + " dev lo src " + NodeIP, // looked up before kube-proxy rewrites the destination
	}
	for _, command := range commands {
		if err := run(command); err != nil {
			return err
		}
	}
	for name, value := range map[string]string{"ip_forward": "1", "conf/all/route_localnet": "1"} {
		if err := os.WriteFile("/proc/sys/net/ipv4/"+name, []byte(value), 0o644); err != nil {
			return err
		}
	}
	// Without the module br_netfilter nothing bridged passes the rules of Services anyway.
	err := os.WriteFile("/proc/sys/net/bridge/bridge-nf-call-iptables", []byte("1"), 0o644)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
