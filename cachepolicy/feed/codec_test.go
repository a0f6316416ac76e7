package feed_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/resource"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

func fullPolicy() *feed.Policy {
	p := &feed.Policy{Namespace: "shop", Name: "catalog", Generation: 7}
	p.Spec.Mode = new(v1alpha1.Mode("Shadow"))
	p.Spec.JitterPercent = new(int32(0))
	// An empty list is a list: it replaces a Gateway's.
	p.Spec.NegativeTTL = []v1alpha1.NegativeTTL{}
	p.Spec.Key = &v1alpha1.Key{Headers: []gatewayv1.HeaderName{}, Cookies: []string{}, Query: &v1alpha1.Query{Names: []v1alpha1.NameMatch{}}}
	p.Spec.Storage = &v1alpha1.Storage{MaxObjectSize: new(resource.MustParse("1024Ki"))}
	return p
}

func fullRoute() *feed.Route {
	return &feed.Route{Kind: "HTTPRoute", Namespace: "shop", Name: "catalog", Rules: []feed.Rule{{
		Policies: []string{"infra/base", "shop/catalog"}, Scope: "shop/httproute/catalog/0",
		EnvoyRoutes: []string{"httproute/shop/catalog/rule/0/*"}, Hosts: []string{"shop.example"},
		Matches: []feed.Match{{
			Path: &feed.PathMatch{Type: "Exact", Value: "/a"}, Method: "GET",
			Headers: []feed.ValueMatch{{Type: "Exact", Name: "a", Value: "b"}},
			Query:   []feed.ValueMatch{{Type: "Exact", Name: "a", Value: "b"}},
		}},
		Created: 1, Entrances: []string{"entrance/infra/gw/http"}, MessageTimeoutMillis: 1000, MaxMessageTimeoutMillis: 2000,
	}}}
}

func fullEntrance() *feed.Entrance {
	return &feed.Entrance{Namespace: "infra", Gateway: "gw", Listener: "http", Address: "gw:80", Scheme: "http",
		Hosts: []string{"*.example"}, CA: "PEM"}
}

// TestRoundTrip: what is encoded is decoded as it was, and says so in the same bytes.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]feed.Object{
		"policy/shop/catalog": fullPolicy(), "route/httproute/shop/catalog": fullRoute(), "entrance/infra/gw/http": fullEntrance(),
	} {
		r, err := feed.Encode(o)
		if err != nil || r.Name != name || r.Version != feed.VersionOf(r.Data) || len(r.Version) != 20 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		got, err := feed.Decode(name, r.Data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(o, got, cmpopts.IgnoreUnexported(resource.Quantity{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if again, _ := feed.Encode(got); again.Version != r.Version {
			t.Errorf("%s: version %s, and %s once it was decoded", name, r.Version, again.Version)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]feed.Object{
		"a part of the name is empty": &feed.Policy{Name: "a"},
		"has 5 parts":                 &feed.Route{Kind: "HTTPRoute", Namespace: "a/b", Name: "c"},
		"at most 1048576":             &feed.Entrance{Namespace: "a", Gateway: "b", Listener: "c", CA: strings.Repeat("x", 1<<20)},
	} {
		if _, err := feed.Encode(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, data, want string }{
		{"policy/shop/a", `{"namespace":"shop","name":"b","generation":1,"spec":{}}`, "the object in it is policy/shop/b"},
		{"policy/shop/a", `{"namespace":"shop","name":"a","generation":1,"spec":{"modes":1}}`, `unknown field "modes"`},
		{"policy/shop/a", `{"namespace":"shop","name":"a","generation":1,"spec":{}} {}`, "more than one"},
		{"policy/shop/a", `{"namespace":"shop","name":"a","generation":1,"spec":{}`, "not understood"},
		{"policy/shop/a", ``, "not understood"},
		{"policy/shop/a", `{"namespace":"shop","name":"a","generation":1,"spec":{},"empty":["ttl"]}`, `"ttl" is no list`},
		{"policy/shop/a", `{"namespace":"shop","name":"a","generation":1,"spec":{},"empty":["key.headers"]}`, "key.headers"},
		{"policy/shop/a", `null`, "the object in it is policy//"},
		{"secret/shop/a", `{}`, "begins with policy/"},
		{"route/httproute/shop/a", strings.Repeat(" ", 1<<20+1), "at most 1048576"},
		{"entrance//gw/l", `{"gateway":"gw","listener":"l"}`, "empty"},
	}
	for _, tc := range tests {
		if o, err := feed.Decode(tc.name, []byte(tc.data)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s %.60s: %+v, %v, want %q", tc.name, tc.data, o, err, tc.want)
		}
	}
}

// TestEqual: objects are the same as their copies, and differ once any one field is changed: a field that Equal forgets
// would never reach the data plane.
func TestEqual(t *testing.T) {
	t.Parallel()
	for _, make := range []func() feed.Object{
		func() feed.Object { return fullPolicy() }, func() feed.Object { return fullRoute() }, func() feed.Object { return fullEntrance() },
	} {
		o := make()
		if !feed.Equal(o, make()) {
			t.Errorf("%s differs from its copy", o.Resource())
		}
		changed := make()
		fields := 0
		each(reflect.ValueOf(changed).Elem(), o.Resource(), func(v reflect.Value, path string) {
			fields++
			before := reflect.New(v.Type()).Elem()
			before.Set(v)
			spoil(v)
			if feed.Equal(o, changed) || feed.Equal(changed, o) {
				t.Errorf("%s: a change is not seen", path)
			}
			v.Set(before)
		})
		if fields < 4 || !feed.Equal(o, changed) {
			t.Errorf("%s: %d fields tried", o.Resource(), fields)
		}
	}
	if feed.Equal(fullPolicy(), fullRoute()) {
		t.Error("a policy equals a route")
	}
}

// each calls f with every field of v, and of what it holds, that belongs to this package.
func each(v reflect.Value, path string, f func(reflect.Value, string)) {
	for i := range v.NumField() {
		field, path := v.Field(i), path+"."+v.Type().Field(i).Name
		if path == "policy/shop/catalog.Empty" {
			continue // on the wire alone
		}
		f(field, path)
		for field.Kind() == reflect.Slice && field.Len() > 0 || field.Kind() == reflect.Pointer && !field.IsNil() {
			if field.Kind() == reflect.Slice {
				field = field.Index(0)
			} else {
				field = field.Elem()
			}
		}
		if field.Kind() == reflect.Struct && strings.HasSuffix(field.Type().PkgPath(), "cachepolicy/feed") {
			each(field, path, f)
		}
	}
}

// spoil gives a field another value.
func spoil(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Int64:
		v.SetInt(v.Int() + 1)
	default:
		if v.IsZero() {
			panic(fmt.Sprint("the value to be changed is empty: ", v.Type()))
		}
		v.SetZero()
	}
}

func FuzzDecode(f *testing.F) {
	for _, o := range []feed.Object{fullPolicy(), fullRoute(), fullEntrance()} {
		r, err := feed.Encode(o)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(r.Name, r.Data)
	}
	f.Add("policy/a/b", []byte(`{"namespace":"a","name":"b","spec":{"storage":{"maxObjectSize":1e99}}}`))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		o, err := feed.Decode(name, data)
		if err != nil {
			return
		}
		r, err := feed.Encode(o)
		if err != nil {
			t.Fatalf("decoded, and not to be encoded: %v", err)
		}
		if r.Name != name {
			t.Fatalf("named %s, then %s", name, r.Name)
		}
		again, err := feed.Decode(r.Name, r.Data)
		if err != nil {
			t.Fatalf("not to be decoded again: %v", err)
		}
		if twice, _ := feed.Encode(again); twice.Version != r.Version {
			t.Fatalf("%s and %s", r.Data, twice.Data)
		}
	})
}
