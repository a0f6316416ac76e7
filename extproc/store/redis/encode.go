package redis

import (
	"encoding/binary"
	"time"

	"github.com/weirproxy/weir/extproc/httpcache"
)

// Flags of a head.
const (
	flagValidateAlways = 1 << iota
	flagNegative
	flagUnreachable
)

// encode returns the head in the newest format, without its seal. The encoding
// is injective: every string has its length in front.
func (h *head) encode() []byte {
	e := &h.entry
	var w writer
	w.uint(e.Shared.Token)
	w.uint(e.Shared.Body)
	w.uint(uint64(h.length))
	w.uint(uint64(h.received))
	for _, d := range [...]time.Duration{e.InitialAge, e.Lifetime, e.WhileRevalidate, e.IfError, e.Cost} {
		w.int(int64(d))
	}
	flags := uint64(0)
	for _, f := range [...]struct {
		set  bool
		flag uint64
	}{{e.ValidateAlways, flagValidateAlways}, {e.Negative, flagNegative}, {e.Unreachable, flagUnreachable}} {
		if f.set {
			flags |= f.flag
		}
	}
	w.uint(flags)
	w.uint(uint64(e.Status))
	w.uint(e.Birth)
	w.string(e.Key.Canonical)
	w.string(e.URI)
	w.string(e.Policy)
	w.strings(e.Vary.Names)
	w.strings(e.VaryValues)
	w.strings(e.Tags)
	w.fields(e.Header)
	return w.buf
}

// writer appends values of variable length.
type writer struct{ buf []byte }

func (w *writer) uint(v uint64) { w.buf = binary.AppendUvarint(w.buf, v) }

func (w *writer) int(v int64) { w.buf = binary.AppendVarint(w.buf, v) }

func (w *writer) string(s string) {
	w.uint(uint64(len(s)))
	w.buf = append(w.buf, s...)
}

func (w *writer) strings(list []string) {
	w.uint(uint64(len(list)))
	for _, s := range list {
		w.string(s)
	}
}

func (w *writer) fields(list httpcache.Fields) {
	w.uint(uint64(len(list)))
	for i := range list {
		w.string(list[i].Name)
		w.string(list[i].Value)
	}
}
