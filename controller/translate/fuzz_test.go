package translate_test

import (
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/controller/translate"
)

// FuzzTranslate wants no object that can be written down to make Translate panic, or
// the feed carry what a replica refuses. Only names are as the API server has them. Run
// it with -fuzzminimizetime=5x: of inputs of this size the minute that is the default
// goes into making them smaller.
func FuzzTranslate(f *testing.F) {
	files, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in, ok := parseLoosely(data)
		if !ok {
			return
		}
		out := translate.Translate(in)
		checkFeed(t, out)
		checkAttached(t, out)
	})
}

// parseLoosely reads an input file; false for one whose names no API server takes.
func parseLoosely(data []byte) (*translate.Input, bool) {
	var file inputFile
	if len(data) > 1<<16 || yaml.Unmarshal(data, &file) != nil {
		return nil, false
	}
	in := &translate.Input{Guards: file.Guards, Addresses: file.Addresses,
		GatewayClasses: []*gatewayv1.GatewayClass{newClass("eg", envoyGateway)}}
	if !file.AttachNone {
		in.Controllers = []translate.Controller{envoyGatewayController()}
	}
	for _, o := range file.Objects {
		if addObject(in, o) != nil {
			return nil, false
		}
	}
	var names []metav1.ObjectMeta
	for _, o := range in.CachePolicies {
		names = append(names, o.ObjectMeta)
	}
	for _, o := range in.HTTPRoutes {
		names = append(names, o.ObjectMeta)
		accept(in, o)
	}
	for _, o := range in.Gateways {
		names = append(names, o.ObjectMeta)
		for i := range o.Spec.Listeners {
			if len(validation.IsDNS1123Subdomain(string(o.Spec.Listeners[i].Name))) > 0 {
				return nil, false
			}
		}
	}
	for i := range names {
		if len(validation.IsDNS1123Label(names[i].Namespace)) > 0 || len(validation.IsDNS1123Subdomain(names[i].Name)) > 0 {
			return nil, false
		}
	}
	return in, true
}
