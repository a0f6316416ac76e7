package refill

import (
	"fmt"
	"testing"
	"time"
)

func TestBackoffDelay(t *testing.T) {
	t.Parallel()
	tests := []struct {
		failures int
		u        float64
		want     time.Duration
	}{
		{0, 0, 500 * time.Millisecond},
		{1, 0, 500 * time.Millisecond},
		{1, 0.5, 750 * time.Millisecond},
		{1, 1, time.Second},
		{2, 1, 2 * time.Second},
		{3, 0, 2 * time.Second},
		{6, 1, 32 * time.Second},
		{7, 1, time.Minute},
		{7, 0, 30 * time.Second},
		{1000000, 0, 30 * time.Second},
		{1 << 62, 1, time.Minute},
	}
	for _, tt := range tests {
		if got := BackoffDelay(tt.failures, time.Second, time.Minute, tt.u); got != tt.want {
			t.Errorf("BackoffDelay(%d, u=%v) = %v, want %v", tt.failures, tt.u, got, tt.want)
		}
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	b := NewBackoff(BackoffOptions{Base: time.Second, Max: 4 * time.Second})
	at := func(s float64) time.Time { return t0.Add(time.Duration(s * float64(time.Second))) }
	try := func(s float64, want bool) {
		t.Helper()
		if got := b.Try("k", nil, at(s)); got != want {
			t.Errorf("Try at %vs = %t, want %t", s, got, want)
		}
	}
	try(0, true)
	try(0, true) // what never failed is not held back
	if wait := b.Failed("k", 0.5, at(0)); wait != 750*time.Millisecond {
		t.Errorf("the first wait is %v", wait)
	}
	try(0.7, false)
	if !b.Waiting("k", at(0.7)) || b.Waiting("k", at(0.75)) || b.Waiting("other", at(0)) {
		t.Error("Waiting is not as long as the wait")
	}
	try(0.75, true)
	try(0.75, false) // one retry at a time
	b.Failed("k", 0.5, at(1))
	try(2.4, false)
	try(2.5, true)
	try(4.4, false)
	try(4.5, true) // the retry never reported: another one after a whole wait
	b.Succeeded("k")
	b.Succeeded("k")
	try(4.5, true)
	if b.Len() != 0 {
		t.Errorf("%d failing keys", b.Len())
	}
	if wait := b.Failed("k", 1, at(5)); wait != time.Second {
		t.Errorf("after a success the first wait is %v", wait)
	}
}

func TestBackoffIsBounded(t *testing.T) {
	t.Parallel()
	b := NewBackoff(BackoffOptions{MaxKeys: 3})
	for _, k := range []string{"a", "b", "c", "a", "d", "e"} {
		b.Failed(k, 0, t0)
	}
	if b.Len() != 3 {
		t.Errorf("%d keys, want the bound of 3", b.Len())
	}
	for k, want := range map[string]bool{"a": true, "d": true, "e": true, "b": false, "c": false} {
		if got := b.Waiting(k, t0); got != want {
			t.Errorf("Waiting(%q) = %t: the one that failed longest ago is to go", k, got)
		}
	}
}

// A dead origin with 1,000 keys behind it: retries stay within the budget.
func TestRetryBudget(t *testing.T) {
	t.Parallel()
	b, budget := NewBackoff(BackoffOptions{}), NewBudget(10)
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprint("k", i)
		b.Failed(keys[i], float64(i)/float64(len(keys)), t0)
	}
	retries := 0
	for tick := range 600 { // a minute, each key asked for ten times a second
		now := t0.Add(time.Duration(tick) * 100 * time.Millisecond)
		for i, k := range keys {
			if b.Try(k, budget, now) {
				retries++
				b.Failed(k, float64(i)/float64(len(keys)), now)
			}
		}
	}
	if retries < 590 || retries > 610 {
		t.Errorf("%d retries in a minute with 10 per second", retries)
	}
	if !b.Try("healthy", budget, t0.Add(time.Minute)) {
		t.Error("a key that never failed pays nothing")
	}
	if !NewBudget(0.5).spend(t0) {
		t.Error("a small budget allows none at all")
	}
}
