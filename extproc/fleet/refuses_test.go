package fleet

import (
	"testing"
	"time"
)

// TestRefusesAgreesWithCheck: what was born before the position is refused, what was
// born there is not.
func TestRefusesAgreesWithCheck(t *testing.T) {
	t.Parallel()
	c := Covered{URI: urlOf("/a"), Host: "example.com", Policy: "shop/catalog", Namespace: "shop"}
	if at := NewStamps(0).Refuses(c); at != 0 {
		t.Errorf("%d without a stamp", at)
	}
	for _, i := range []struct {
		Invalidation
		names bool
	}{
		{Invalidation{ByURL, "shop", urlOf("/a"), Hard}, true}, {Invalidation{ByURL, "", urlOf("/a"), Hard}, true},
		{Invalidation{ByURL, "blog", urlOf("/a"), Hard}, false}, {Invalidation{ByURL, "shop", urlOf("/b"), Hard}, false},
		{Invalidation{ByHost, "shop", "example.com", Hard}, true}, {Invalidation{ByHost, "", "example.com", Hard}, true},
		{Invalidation{ByPolicy, "shop", "shop/catalog", Hard}, true}, {Invalidation{ByNamespace, "shop", "shop", Hard}, true},
		{Invalidation{ByAll, "", "", Hard}, true}, {Invalidation{ByAll, "", "", Soft}, false},
		{Invalidation{ByURL, "shop", urlOf("/a"), Soft}, false},
	} {
		s := NewStamps(0)
		s.Add(ByTag, "shop", "other", Hard, time.Time{})
		at := s.Add(i.Kind, i.Namespace, i.Value, i.Mode, time.Time{})
		got := s.Refuses(c)
		if want := map[bool]uint64{true: at}[i.names]; got != want {
			t.Errorf("%+v: position %d, want %d", i.Invalidation, got, want)
		}
		for birth := range at + 1 {
			c.Birth = birth
			if refused := s.Check(c) == Refused; refused != (birth < got) {
				t.Errorf("%+v: born at %d, Refuses is %d, Check says %v", i.Invalidation, birth, got, s.Check(c))
			}
		}
	}
}

// TestRefusesCountsWhatIsFolded into the floor.
func TestRefusesCountsWhatIsFolded(t *testing.T) {
	t.Parallel()
	s := NewStamps(1)
	at := s.Add(ByURL, "shop", urlOf("/a"), Hard, time.Time{})
	s.Add(ByURL, "shop", urlOf("/b"), Hard, time.Time{})
	if got := s.Refuses(Covered{URI: urlOf("/c"), Namespace: "shop"}); got != at {
		t.Errorf("position %d, want %d: what is under the floor may name anything", got, at)
	}
}

// TestNobodyWaitsForWhatIsInvalid: after an invalidation another process fetches
// anew, and the answer that was under way is not stored for all.
func TestNobodyWaitsForWhatIsInvalid(t *testing.T) {
	t.Parallel()
	_, client := mini(t)
	a, b := join(t, client, "a", nil), join(t, client, "b", nil)
	c := claimOf("/1")
	c.URI = urlOf("/1")
	old := a.granted(t, c)
	early := a.answer(c, "old")
	b.wants(t, c, Held)
	if _, err := b.Stamp(t.Context(), Invalidation{Kind: ByURL, Namespace: "shop", Value: urlOf("/2")}); err != nil {
		t.Fatal(err)
	}
	held := b.wants(t, c, Held) // of another resource
	if _, err := b.Stamp(t.Context(), Invalidation{Kind: ByURL, Namespace: "shop", Value: c.URI}); err != nil {
		t.Fatal(err)
	}
	if got := b.Wait(t.Context(), c, held); got.State != Free {
		t.Errorf("waiting ends with %v, want free", got.State)
	}
	fresh := b.granted(t, c)
	a.wants(t, c, Held) // whoever else: one fetch is enough
	if _, err := a.Fleet.Commit(t.Context(), old, early, nil); err == nil {
		t.Error("the answer from before was stored")
	}
	b.commits(t, fresh, b.answer(c, "new"))
	if got := a.wants(t, c, Found); content(got.Entry) != "new" {
		t.Errorf("found %q", content(got.Entry))
	}
}
