// Command kube-api-linter holds API types to the Kubernetes API conventions, with the analyzers of
// sigs.k8s.io/kube-api-linter. That project is a plugin that golangci-lint must be built with; these few lines run it
// alone, from the module pinned in go.mod.
package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/multichecker"
	"sigs.k8s.io/kube-api-linter/pkg/plugin/base"
	_ "sigs.k8s.io/kube-api-linter/pkg/registration" // the analyzers
)

// settings are those of the plugin: every analyzer but the named.
var settings = map[string]any{
	"linters": map[string]any{
		"enable": []string{"*"},
		"disable": []string{
			"minlength",         // an empty block or list is valid: it says no more than its absence
			"nonpointerstructs", // for types that are validated in Go; those of a CRD have a schema
			// These do nothing without rules of one's own.
			"conflictingmarkers", "dependenttags", "forbiddenmarkers", "namingconventions", "preferredmarkers",
		},
	},
	"lintersConfig": map[string]any{
		"conditions": map[string]any{"useProtobuf": "Forbid", "usePatchStrategy": "Forbid"},
		"defaults":   map[string]any{"preferredDefaultMarker": "kubebuilder:default"},
	},
}

// exceptions are the fields, by analyzer, where it is wrong.
var exceptions = map[string][]string{
	// An empty spec is valid: every field of a policy may be inherited or left to its default.
	"requiredfields": {"CachePolicy.Spec"},
	// The status of a root type is a struct with omitzero, as controllers have it everywhere.
	"optionalfields": {"CachePolicy.Status", "CacheInvalidation.Status"},
}

func main() {
	plugin, err := base.New(settings)
	if err != nil {
		fail(err)
	}
	analyzers, err := plugin.BuildAnalyzers()
	if err != nil {
		fail(err)
	}
	for _, a := range analyzers {
		except(a, exceptions[a.Name])
	}
	multichecker.Main(analyzers...)
}

// except has the analyzer pass over fields.
func except(a *analysis.Analyzer, fields []string) {
	run := a.Run
	a.Run = func(pass *analysis.Pass) (any, error) {
		report := pass.Report
		pass.Report = func(d analysis.Diagnostic) {
			for _, field := range fields {
				if strings.HasPrefix(d.Message, "field "+field+" ") {
					return
				}
			}
			report(d)
		}
		return run(pass)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "kube-api-linter:", err)
	os.Exit(1)
}
