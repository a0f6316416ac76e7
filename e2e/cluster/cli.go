package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/weirproxy/weir/e2e/harness"
)

// Kubectl runs kubectl as the cluster's administrator, from the root of the module, with stdin as its input. It returns
// what it printed to its standard output; what it printed to the other is in the error.
func (c *Cluster) Kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	return c.cli(ctx, c.programs.kubectl, stdin, args)
}

// Helm runs helm as Kubectl runs kubectl: charts are charts/weir and the like.
func (c *Cluster) Helm(ctx context.Context, args ...string) (string, error) {
	return c.cli(ctx, c.programs.helm, "", args)
}

// Apply applies manifests, and fails the test when the API server does not take them.
func (c *Cluster) Apply(tb harness.TB, manifests string) {
	tb.Helper()
	if _, err := c.Kubectl(tb.Context(), manifests, "apply", "-f", "-"); err != nil {
		tb.Fatalf("%v", err)
	}
}

// Await waits until an object has a condition: kubectl wait with these arguments, for three minutes at most.
func (c *Cluster) Await(tb harness.TB, args ...string) {
	tb.Helper()
	args = append([]string{"wait", "--timeout=" + startLimit.String()}, args...)
	if _, err := c.Kubectl(tb.Context(), "", args...); err != nil {
		tb.Fatalf("%v", err)
	}
}

func (c *Cluster) cli(ctx context.Context, program, stdin string, args []string) (string, error) {
	root, err := harness.ModuleRoot()
	if err != nil {
		return "", err
	}
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = root
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
	for _, kind := range []string{"CONFIG", "CACHE", "DATA"} {
		command.Env = append(command.Env, "HELM_"+kind+"_HOME="+filepath.Join(stateDir, "helm"))
	}
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := command.Run(); err != nil {
		words := strings.Join(append([]string{filepath.Base(program)}, args...), " ")
		return stdout.String(), fmt.Errorf("%s: %w: %s", words, err, stderr.String())
	}
	return stdout.String(), nil
}
