// Package controller_test runs the real weir-controller, with the rights of config/rbac, against a real API server.
// The replicas of the data plane are played: they speak the feed and run whatever they are sent, or refuse it. The
// controllers of Kubernetes and of Envoy Gateway are played too, where a test needs what they write.
//
// A weir-controller looks at all namespaces, so tests run one after the other, and each cleans up.
package controller_test

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weirproxy/weir/e2e/kube"
)

var server *kube.Server

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(kube.Main(m, &server))
}
