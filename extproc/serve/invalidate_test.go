package serve

import (
	"strings"
	"testing"

	"github.com/weirproxy/weir/extproc/admin"
)

// TestInvalidationWarnings: what may be a mistake is said, and nothing else.
func TestInvalidationWarnings(t *testing.T) {
	t.Parallel()
	b, _, err := assembled(t, map[string]string{"catalog.yaml": catalog}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.put(t, "https://shop.example/a", nil)
	const alone = "cannot know whether there are others"
	for _, tt := range []struct {
		request admin.InvalidateRequest
		want    []string
	}{
		{admin.InvalidateRequest{By: "All"}, []string{alone}},
		{admin.InvalidateRequest{By: "Tag", Namespace: "shop", Value: "x"}, []string{alone}},
		{admin.InvalidateRequest{By: "Url", Value: "https://shop.example/other"}, []string{alone}},
		{admin.InvalidateRequest{By: "Url", Value: "https://blog.example/"}, []string{alone, "nothing of that host"}},
		{admin.InvalidateRequest{By: "Host", Value: "blog.example"}, []string{alone, "nothing of that host"}},
		{admin.InvalidateRequest{By: "Policy", Namespace: "shop", Value: "catalog"}, []string{alone}},
		{admin.InvalidateRequest{By: "Policy", Namespace: "shop", Value: "x"}, []string{alone, "no policy shop/x"}},
		{admin.InvalidateRequest{By: "Namespace", Namespace: "x"}, []string{alone, `no policy of namespace "x"`}},
		{admin.InvalidateRequest{By: "Tag", Namespace: "x", Value: "p7"}, []string{alone, `no policy of namespace "x"`}},
	} {
		tt.request.Mode = admin.ModeHard
		r, err := b.Invalidate(t.Context(), tt.request)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Warnings) != len(tt.want) {
			t.Errorf("%+v: warnings %q, want %q", tt.request, r.Warnings, tt.want)
			continue
		}
		for i, want := range tt.want {
			if !strings.Contains(r.Warnings[i], want) {
				t.Errorf("%+v: warning %q does not say %q", tt.request, r.Warnings[i], want)
			}
		}
	}
}
