package istio

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weirproxy/weir/controller/attach"
)

// The implementations of the Gateway API that Istio has, by GatewayClass.spec.controllerName.
const (
	GatewayController  = "istio.io/gateway-controller"
	WaypointController = "istio.io/mesh-controller"
)

// The groups and kinds of parents.
const (
	groupGatewayAPI = "gateway.networking.k8s.io"
	groupIstio      = "networking.istio.io"
	kindGateway     = "Gateway"
	kindHTTPRoute   = "HTTPRoute"
	kindVirtual     = "VirtualService"
	kindService     = "Service"
)

// Options say what EnvoyFilters are made for.
type Options struct {
	// RootNamespace is where an EnvoyFilter is for the whole mesh: istio-system.
	RootNamespace string
	// ClusterDomain is the domain of Services: cluster.local.
	ClusterDomain string
	DataPlane     attach.DataPlane
	// Release, if not nil, owns what is made.
	Release *metav1.OwnerReference
	// ServicePorts are the ports of Services, which a mesh route without a port of its own has all.
	ServicePorts map[types.NamespacedName][]int32
	// Selectors are the spec.selector of each classic Gateway.
	Selectors map[types.NamespacedName]map[string]string
}

// serviceHost is the name that istiod knows a Service by.
func (o *Options) serviceHost(service types.NamespacedName) string {
	return service.Name + "." + service.Namespace + ".svc." + o.ClusterDomain
}
