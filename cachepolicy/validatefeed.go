package cachepolicy

import "github.com/weirproxy/weir/cachepolicy/feed"

// ValidateRoute returns why a replica would refuse a route, whatever the policies and
// entrances that it names; nil: it would not. The controller asks before it sends.
func ValidateRoute(r *feed.Route) error {
	_, err := compileRoute(r)
	return err
}

// ValidateEntrance returns why a replica would refuse an entrance; nil: it would not.
func ValidateEntrance(e *feed.Entrance) error {
	_, err := newEntrance(e)
	return err
}
