package feed

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// MaxResourceBytes bounds the JSON of one resource. A route of the Gateway API with
// all that its schema allows stays far below.
const MaxResourceBytes = 1 << 20

// versionBytes is how much of the hash of a resource is its version.
const versionBytes = 10

// Object is what a resource carries: *Policy, *Route or *Entrance.
type Object interface {
	// Resource returns the name of the resource.
	Resource() string
}

// Resource is an object as it travels. The version is a hash of the data, so that
// all replicas of the controller give the same one.
type Resource struct {
	Name, Version string
	Data          []byte
}

// The first part of the names of resources.
const (
	policyPrefix   = "policy/"
	routePrefix    = "route/"
	entrancePrefix = "entrance/"
)

// PolicyResource returns the name of the resource of the policy namespace/name.
func PolicyResource(policy string) string { return policyPrefix + policy }

// EntranceResource returns the name of the resource of the entrance
// namespace/gateway/listener, as Rule.Entrances may name it: with or without the
// prefix "entrance/".
func EntranceResource(entrance string) string {
	return entrancePrefix + strings.TrimPrefix(entrance, entrancePrefix)
}

// Resource implements [Object].
func (p *Policy) Resource() string { return PolicyResource(p.Namespace + "/" + p.Name) }

// Resource implements [Object].
func (r *Route) Resource() string {
	return routePrefix + strings.ToLower(r.Kind) + "/" + r.Namespace + "/" + r.Name
}

// Resource implements [Object].
func (e *Entrance) Resource() string {
	return entrancePrefix + e.Namespace + "/" + e.Gateway + "/" + e.Listener
}

// Encode returns an object as a resource. It refuses what Decode would.
func Encode(o Object) (Resource, error) {
	name := o.Resource()
	if err := checkName(name); err != nil {
		return Resource{}, err
	}
	if p, ok := o.(*Policy); ok {
		stated := *p
		stated.Empty = emptyLists(&p.Spec)
		o = &stated
	}
	data, err := json.Marshal(o)
	if err != nil {
		return Resource{}, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > MaxResourceBytes {
		return Resource{}, fmt.Errorf("%s: %d bytes, at most %d are possible", name, len(data), MaxResourceBytes)
	}
	return Resource{Name: name, Version: VersionOf(data), Data: data}, nil
}

// VersionOf returns the version of a resource with this data.
func VersionOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:versionBytes])
}

// Decode reads the object in a resource. It refuses what it does not know, and an
// object that does not belong under the name: a data plane that understands a
// resource in part would do something nobody asked for.
func Decode(name string, data []byte) (Object, error) {
	if len(data) > MaxResourceBytes {
		return nil, fmt.Errorf("%d bytes, at most %d are possible", len(data), MaxResourceBytes)
	}
	var o Object
	switch {
	case strings.HasPrefix(name, policyPrefix):
		o = new(Policy)
	case strings.HasPrefix(name, routePrefix):
		o = new(Route)
	case strings.HasPrefix(name, entrancePrefix):
		o = new(Entrance)
	default:
		return nil, errors.New("want a name that begins with policy/, route/ or entrance/")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(o); err != nil {
		return nil, fmt.Errorf("not understood: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("not understood: more than one JSON value")
	}
	if own := o.Resource(); own != name {
		return nil, fmt.Errorf("the object in it is %s", own)
	}
	if p, ok := o.(*Policy); ok {
		if err := restoreLists(&p.Spec, p.Empty); err != nil {
			return nil, err
		}
		p.Empty = nil
	}
	return o, checkName(name)
}

// checkName wants the parts that the names of a kind have.
func checkName(name string) error {
	parts, want := strings.Split(name, "/"), 4
	if parts[0]+"/" == policyPrefix {
		want = 3
	}
	if len(parts) != want {
		return fmt.Errorf("resource %q: the name has %d parts, not %d", name, len(parts), want)
	}
	if slices.Contains(parts, "") {
		return fmt.Errorf("resource %q: a part of the name is empty", name)
	}
	return nil
}
