package kube_test

import (
	"os"
	"testing"

	"github.com/weirproxy/weir/e2e/kube"
)

var server *kube.Server

func TestMain(m *testing.M) { os.Exit(kube.Main(m, &server)) }
