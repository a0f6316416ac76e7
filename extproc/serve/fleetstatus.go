package serve

import (
	"context"
	"time"

	"github.com/weirproxy/weir/extproc/admin"
	"github.com/weirproxy/weir/extproc/metrics"
)

// maxReplicas bounds the replicas that one status lists.
const maxReplicas = 1000

// stats are what metrics are read from.
func (m *membership) stats() metrics.FleetStats {
	return metrics.FleetStats{
		Fleet: m.fleet.Stats(), CaughtUp: m.fleet.CaughtUp(time.Now()), Guard: m.guard.Stats(), Shared: m.shared.Stats(),
		Errors: m.commands.Errors(),
	}
}

// status is the part of the admin API's status about the fleet; nil in a process
// that is alone. It asks Redis who else there is, within a short time limit.
func (m *membership) status() *admin.FleetStatus {
	if m == nil {
		return nil
	}
	s := m.stats()
	f := &admin.FleetStatus{
		Replica: m.replica, Redis: m.url, InTouch: s.Fleet.InTouch, CaughtUp: s.CaughtUp,
		SilentSeconds: s.Fleet.SilentFor.Seconds(), Leases: s.Fleet.Held, Waiting: s.Fleet.Waiting,
		Claims: s.Claims(), Waits: s.Waits(), Losses: s.Fleet.Losses, Histories: s.Fleet.Histories,
		Position: s.Fleet.Position, Pending: s.Fleet.Pending,
		Circuit: admin.Circuit{
			State: "closed", Nodes: s.Guard.Nodes, Open: s.Guard.Open, Opened: s.Guard.Opened, Refused: s.Guard.Refused,
			Slow: s.Guard.Slow,
		},
		Errors: map[string]uint64{}, Refused: metrics.RefusalsByReason(&s.Shared.Refused),
	}
	if s.Guard.Open > 0 {
		f.Circuit.State = "open"
	}
	for kind, n := range s.Errors {
		f.Errors[metrics.RedisErrorKind(kind).String()] = n
	}
	m.listReplicas(f)
	return f
}

func (m *membership) listReplicas(f *admin.FleetStatus) {
	list, err := m.fleet.Replicas(context.Background())
	if err != nil {
		f.ReplicasError = err.Error()
		return
	}
	for i := range list[:min(len(list), maxReplicas)] {
		f.Replicas = append(f.Replicas, admin.ReplicaOf(&list[i], m.fleet.Alive(&list[i])))
	}
}
