package controller

import (
	"slices"

	"github.com/weirproxy/weir/controller/attach"
	"github.com/weirproxy/weir/controller/attach/envoygateway"
	"github.com/weirproxy/weir/controller/attach/istio"
)

// attachers are what --attach may name.
func (c *Config) attachers() []attach.Attacher {
	return []attach.Attacher{
		&envoygateway.Attacher{},
		istio.New(istio.Config{RootNamespace: c.IstioRootNamespace, ClusterDomain: c.ClusterDomain}),
	}
}

func (c *Config) attacherNames() []string {
	var names []string
	for _, a := range c.attachers() {
		names = append(names, a.Name())
	}
	return names
}

// chosen returns the attachers that --attach names.
func (c *Config) chosen() []attach.Attacher {
	return slices.DeleteFunc(c.attachers(), func(a attach.Attacher) bool { return !slices.Contains(c.Attach, a.Name()) })
}
