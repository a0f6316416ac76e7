package main

import "testing"

func TestClassify(t *testing.T) {
	t.Parallel()
	tests := []struct{ value, want string }{
		{"", "none"},
		{`weir; hit; ttl=57`, "hit"},
		{`weir; hit`, "hit"},
		{`weir; hit; ttl=-3`, "stale"},
		{`weir; fwd=uri-miss; stored`, "uri-miss"},
		{`weir; fwd=uri-miss; collapsed`, "uri-miss, collapsed"},
		{`weir; fwd=stale; fwd-status=503`, "stale"},
		{`weir; detail=no-policy`, "passed"},
		{`inner; hit, weir; fwd=uri-miss`, "uri-miss"},
		{`not a list (`, "none"},
	}
	for _, tt := range tests {
		t.Run(tt.value, func(t *testing.T) {
			t.Parallel()
			if got := classify(tt.value); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTally(t *testing.T) {
	t.Parallel()
	got := tally(map[int]int{503: 2, 200: 40, 404: 2})
	if want := "200 ×40  404 ×2  503 ×2"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
