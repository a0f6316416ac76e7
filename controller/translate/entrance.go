package translate

import (
	"cmp"
	"net"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/feed"
)

// entrancesOf names where a detached fetch for a rule may come in: the listeners where
// it is in force, without those that ask for more than weir has. None for a rule that a
// mesh serves too, whose hosts no Gateway need know.
func (t *translation) entrancesOf(d *decision) []string {
	var out []string
	for i := range d.units {
		u := &d.units[i]
		switch {
		case !u.live():
		case u.place.listener == nil:
			return nil
		case !u.guard.NoDetachedFetch:
			if e := t.entrance(u.place.listener); e != nil {
				out = append(out, e.Resource())
			}
		}
	}
	return out
}

// entrance returns the way in at a listener; nil: none.
func (t *translation) entrance(l *listener) *feed.Entrance {
	if e, ok := t.entrances[l]; ok {
		return e
	}
	e := t.newEntrance(l)
	t.entrances[l] = e
	return e
}

func (t *translation) newEntrance(l *listener) *feed.Entrance {
	host, port := l.gateway.address, l.port
	if a := t.address(l); a != nil {
		if a.None {
			return nil
		}
		host = a.Host
		if a.Port != 0 {
			port = a.Port
		}
	}
	if host == "" || l.clientCerts || l.gateway.unreachable {
		return nil
	}
	e := &feed.Entrance{
		Namespace: l.gateway.name.Namespace, Gateway: l.gateway.name.Name, Listener: l.name,
		Address: net.JoinHostPort(host, strconv.Itoa(int(port))), Scheme: "http",
	}
	if l.hostname != "" {
		e.Hosts = []string{l.hostname}
	}
	if l.protocol == gatewayv1.HTTPSProtocolType {
		e.Scheme = "https"
		e.CA = t.authority(l)
	}
	if cachepolicy.ValidateEntrance(e) != nil {
		return nil
	}
	return e
}

// addAddress takes in what an attachment says of a listener, in whatever order.
func (t *translation) addAddress(a *Address) {
	key := addressKey{a.Gateway, a.Listener}
	before := t.addresses[key]
	if before == nil || !before.None && (a.None ||
		cmp.Or(cmp.Compare(a.Host, before.Host), cmp.Compare(a.Port, before.Port)) < 0) {
		t.addresses[key] = a
	}
}

// address is what an attachment says of a listener, or else of its Gateway.
func (t *translation) address(l *listener) *Address {
	for _, name := range []string{l.name, ""} {
		if a := t.addresses[addressKey{l.gateway.name, name}]; a != nil {
			return a
		}
	}
	return nil
}

// authority is what a listener's certificate is verified against; a Secret in another
// namespace only counts where the Gateway may use it.
func (t *translation) authority(l *listener) string {
	if l.certificate == nil || !Permitted(t.in.ReferenceGrants,
		From{gatewayv1.GroupName, kindGateway, l.gateway.name.Namespace}, "", "Secret", *l.certificate) {
		return ""
	}
	return string(t.in.Certificates[*l.certificate])
}

// addressKey is a listener, or with an empty name all listeners of a Gateway.
type addressKey struct {
	gateway  types.NamespacedName
	listener string
}
