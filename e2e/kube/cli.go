package kube

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/weirproxy/weir/e2e/harness"
)

// Kubectl runs kubectl against the server, as its administrator, with stdin as its input. It returns what it printed
// to its standard output; what it printed to the other is in the error.
func (s *Server) Kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	return s.run(ctx, s.kubectl, stdin, args)
}

// Helm runs helm against the server, as its administrator, from the root of the module: charts are charts/weir and the
// like. It returns what it printed to its standard output; what it printed to the other is in the error.
func (s *Server) Helm(ctx context.Context, args ...string) (string, error) {
	return s.run(ctx, s.helm, "", args)
}

func (s *Server) run(ctx context.Context, program, stdin string, args []string) (string, error) {
	root, err := harness.ModuleRoot()
	if err != nil {
		return "", err
	}
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = root
	command.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig, "HELM_CONFIG_HOME="+s.dir,
		"HELM_CACHE_HOME="+s.dir, "HELM_DATA_HOME="+s.dir)
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}
