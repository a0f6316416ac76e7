package cluster

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed files
var files embed.FS

// settings are what the files are filled with.
type settings struct {
	State, Logs, CgroupRoot                         string
	NodeName, NodeIP, PodCIDR, DNSIP, ClusterDomain string
	PauseImage, CoreDNSImage, EnvoyImage            string
}

// fill returns the file files/NAME with what is in {{braces}} filled in.
func fill(name string) (string, error) {
	text, err := template.ParseFS(files, "files/"+name)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	var filled bytes.Buffer
	err = text.Option("missingkey=error").Execute(&filled, settings{
		State: stateDir, Logs: logDir, CgroupRoot: cgroupRoot,
		NodeName: nodeName, NodeIP: NodeIP, PodCIDR: podCIDR, DNSIP: dnsIP, ClusterDomain: clusterDomain,
		PauseImage: pauseImage, CoreDNSImage: coreDNSImage, EnvoyImage: EnvoyImage,
	})
	if err != nil {
		return "", fmt.Errorf("fill %s in: %w", name, err)
	}
	return filled.String(), nil
}

// writeConfig writes the file files/NAME, filled in, below the state folder, and returns its path.
func writeConfig(name, to string) (string, error) {
	text, err := fill(name)
	if err != nil {
		return "", err
	}
	path := filepath.Join(stateDir, to)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, []byte(text), 0o644)
}
