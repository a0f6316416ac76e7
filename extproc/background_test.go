package extproc

import (
	"testing"
	"testing/synctest"
)

// TestBackgroundEndsWithWhatItBegan: work that is cancelled may leave work behind,
// which close waits for too; afterwards nothing begins.
func TestBackgroundEndsWithWhatItBegan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBackground()
		gaveBack := false
		b.do(func() {
			<-b.ctx.Done()
			b.do(func() {
				synctest.Wait() // close has had its chance to return
				gaveBack = true
			})
		})
		b.close()
		if !gaveBack {
			t.Error("close did not wait for what the cancelled work began")
		}
		if b.do(func() { t.Error("work began after close") }) {
			t.Error("do says that work began after close")
		}
	})
}
