package istio

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/controller/translate"
)

const (
	// oldestMinor is the minor version of the oldest Istio 1 whose proxy can stream answers of weir: it is Envoy 1.37.
	oldestMinor = 29
	// minorOfEnvoy is what the minor version of Envoy in Istio's proxy is ahead of Istio's.
	minorOfEnvoy = 8
	// notTooOld matches what proxies say their Istio is, unless it is 1.0 to 1.28: so that one that was not upgraded yet
	// goes uncached. Builds that are named otherwise are taken to be new enough.
	notTooOld = `^([^1].*|1|1[^.].*|1\.(29|[3-9][0-9]|[1-9][0-9][0-9]).*|1\.[^0-9].*)$`
	// proxyContainer is the container of Istio's proxy, and proxyImage how its image is called.
	proxyContainer = "istio-proxy"
	proxyImage     = "proxyv2"
	// labelGatewayName is on what istiod makes for a Gateway.
	labelGatewayName = "gateway.networking.k8s.io/gateway-name"
)

// KindDeployment is what the proxies of a Gateway are, of which Deployments tells those that matter.
//
//nolint:gochecknoglobals // a constant, which Go has no way to say of structs
var KindDeployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

// Deployments selects the Deployments that istiod makes for Gateways.
func Deployments() labels.Selector {
	return labels.SelectorFromSet(labels.Set{"gateway.istio.io/managed": "istio.io-gateway-controller"})
}

// tooOld refuses a Gateway whose proxies are too old, if its Deployment tells.
func tooOld(g *gatewayv1.Gateway, images map[types.NamespacedName]string) []translate.Guard {
	image := images[types.NamespacedName{Namespace: g.Namespace, Name: g.Name}]
	minor, ok := istioMinor(image)
	if !ok || minor >= oldestMinor {
		return nil
	}
	target := translate.Target{Kind: kindGateway, Namespace: g.Namespace, Name: g.Name}
	return []translate.Guard{refuse(target, reasonTooOld,
		fmt.Sprintf("The proxies of the Gateway run the image %s: Istio 1.%d has Envoy 1.%d, and weir needs Envoy 1.%d or "+
			"later, which is Istio 1.%d.", image, minor, minor+minorOfEnvoy, oldestMinor+minorOfEnvoy, oldestMinor))}
}

// istioMinor is the minor version of Istio 1 that an image of its proxy is of, if its name tells.
func istioMinor(image string) (int, bool) {
	match := imageTag().FindStringSubmatch(image[strings.LastIndex(image, "/")+1:])
	if match == nil {
		return 0, false
	}
	minor, err := strconv.Atoi(match[1])
	return minor, err == nil
}

func imageTag() *regexp.Regexp {
	return regexp.MustCompile(`^` + proxyImage + `:1\.([0-9]{1,3})(\D|$)`)
}

// proxyImages are the images of the proxies that istiod deployed, by Gateway.
func proxyImages(deployments []unstructured.Unstructured) map[types.NamespacedName]string {
	out := map[types.NamespacedName]string{}
	for i := range deployments {
		d := &deployments[i]
		gateway := d.GetLabels()[labelGatewayName]
		containers, _, err := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
		if gateway == "" || err != nil {
			continue
		}
		for _, c := range containers {
			container, ok := c.(object)
			if image, isText := container["image"].(string); ok && isText && container["name"] == proxyContainer {
				out[types.NamespacedName{Namespace: d.GetNamespace(), Name: gateway}] = image
			}
		}
	}
	return out
}
