package httpcache

import "testing"

// RFC 9111 §5.2.2.3: the codes of RFC 9110 §15 and RFC 7725 that this cache may
// store.
func TestUnderstood(t *testing.T) {
	t.Parallel()
	want := map[int]bool{}
	for _, status := range []int{
		200, 201, 202, 203, 204, 205, 300, 301, 302, 303, 305, 307, 308,
		400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 413, 414, 415, 421, 422, 426, 451,
		500, 501, 502, 503, 504, 505,
	} {
		want[status] = true
	}
	for status := range 1000 {
		if got := understood(status); got != want[status] {
			t.Errorf("understood(%d) = %v", status, got)
		}
		if understood(status) && statusForbids(status) != "" {
			t.Errorf("%d is understood and never stored", status)
		}
	}
}
