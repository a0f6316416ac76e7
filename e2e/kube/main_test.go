package kube_test

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
