package main

import (
	"strings"
	"testing"

	"github.com/weirproxy/weir/extproc/admin"
)

func TestPrintFleet(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		fleet *admin.FleetStatus
		want  []string
	}{
		{"alone", nil, []string{"alone (no --redis-url)"}},
		{"away", &admin.FleetStatus{CaughtUp: true, ReplicasError: "circuit open", Circuit: admin.Circuit{State: "open"}},
			[]string{"Redis is away: on its own", "unknown: circuit open", "circuit open"}},
		{"behind", &admin.FleetStatus{}, []string{"catching up: nothing cached is served", "0 alive"}},
		{"another history", &admin.FleetStatus{Replicas: []admin.Replica{{Name: "b", Alive: true}}},
			[]string{"1 alive; b behind"}},
	}
	for _, tt := range tests {
		var b strings.Builder
		printFleet(&b, tt.fleet)
		for _, want := range tt.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: %q is not in:\n%s", tt.name, want, b.String())
			}
		}
	}
}
