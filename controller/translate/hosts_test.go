package translate

import "testing"

func TestIntersect(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		listener, route, want string
		none                  bool
	}{
		{listener: "", route: "", want: ""},
		{listener: "", route: "*.a.com", want: "*.a.com"},
		{listener: "a.com", route: "", want: "a.com"},
		{listener: "a.com", route: "a.com", want: "a.com"},
		{listener: "a.com", route: "b.com", none: true},
		{listener: "*.a.com", route: "x.a.com", want: "x.a.com"},
		{listener: "x.a.com", route: "*.a.com", want: "x.a.com"},
		{listener: "*.a.com", route: "x.y.a.com", want: "x.y.a.com"},
		{listener: "*.a.com", route: "a.com", none: true}, // a wildcard stands for a label at least
		{listener: "*.a.com", route: ".a.com", none: true},
		{listener: "*.a.com", route: "xa.com", none: true},
		{listener: "*.a.com", route: "*.a.com", want: "*.a.com"},
		{listener: "*.com", route: "*.a.com", want: "*.a.com"},
		{listener: "*.a.com", route: "*.com", want: "*.a.com"},
		{listener: "*.a.com", route: "*.b.com", none: true},
	} {
		got, ok := intersect(tc.listener, tc.route)
		if got != tc.want || ok == tc.none {
			t.Errorf("intersect(%q, %q) = %q, %v; want %q, %v", tc.listener, tc.route, got, ok, tc.want, !tc.none)
		}
	}
}
