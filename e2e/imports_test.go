package e2e_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestDataPlaneLinksNoKubernetesClient holds design §2: weir-extproc talks to no API server.
func TestDataPlaneLinksNoKubernetesClient(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "../cmd/weir-extproc").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	if !strings.Contains(string(out), "google.golang.org/grpc\n") {
		t.Fatalf("go list names no gRPC, so it cannot be trusted:\n%s", out)
	}
	for pkg := range strings.Lines(string(out)) {
		for _, forbidden := range []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"} {
			if strings.HasPrefix(pkg, forbidden) {
				t.Errorf("weir-extproc links %s", strings.TrimSpace(pkg))
			}
		}
	}
}
