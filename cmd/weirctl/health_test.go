package main

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// healthServer is an ext_proc port that says this of itself.
func healthServer(t *testing.T, status healthv1.HealthCheckResponse_ServingStatus) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := health.NewServer()
	h.SetServingStatus("", status)
	s := grpc.NewServer()
	healthv1.RegisterHealthServer(s, h)
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.Stop)
	return listener.Addr().String()
}

func TestHealth(t *testing.T) {
	t.Parallel()
	serving := healthServer(t, healthv1.HealthCheckResponse_SERVING)
	draining := healthServer(t, healthv1.HealthCheckResponse_NOT_SERVING)
	tests := []struct{ name, args, out, err string }{
		{"it serves", serving, serving + " serves", ""},
		{"it drains", draining, "", "NOT_SERVING"},
		{"a certificate without CAs", serving + " --cert-file=x --key-file=y", "", "want --ca-file"},
		{"CAs that are not there", serving + " --ca-file=/nowhere", "", "--ca-file"},
		{"no address", "", "", "accepts 1 arg"},
		{"nobody there", "127.0.0.1:1 --timeout=50ms", "", "127.0.0.1:1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			err := run(t.Context(), "v0", append([]string{"health"}, strings.Fields(tt.args)...), &out, &errs)
			if !strings.Contains(out.String(), tt.out) || (err == nil) != (tt.err == "") ||
				err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("weirctl health %s: %q, %v", tt.args, out.String(), err)
			}
		})
	}
}
