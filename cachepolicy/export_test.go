package cachepolicy

// TableSizes are the sizes of what a Table keeps.
func TableSizes(t *Table) map[string]int {
	return map[string]int{
		"policies": len(t.policies), "entrances": len(t.entrances), "routes": len(t.routes), "chains": len(t.chains),
		"chainsOf": len(t.chainsOf), "users": len(t.users), "scopes": len(t.scopes.byName), "names": len(t.names.byName),
		"prefixes": len(t.prefixes.byName), "queries": len(t.queries), "byName": t.set.byName.size,
		"byScope": t.set.byScope.size, "inForce": int(t.inForce.next) - len(t.inForce.free),
		"hosts": t.set.hosts.byHost.size, "depths": int(t.set.depths),
	}
}
