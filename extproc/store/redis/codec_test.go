package redis

import (
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
)

var update = flag.Bool("update", false, "write the golden file of the present format")

// full is a head with something in every field.
func full() *head {
	return &head{
		received: 1_796_040_000_123_456, length: 70_000,
		entry: store.Entry{
			Key: cachepolicy.Key{Canonical: "scope\x00https\x00example.com\x00/a?b"}, URI: "https://example.com/a?b",
			Vary:       httpcache.Vary{Names: []string{"accept-encoding", "cookie"}},
			VaryValues: []string{"gzip", httpcache.Absent},
			Status:     203,
			Header: httpcache.Fields{
				{Name: "content-type", Value: "text/plain"}, {Name: "link", Value: "a"}, {Name: "link", Value: ""},
			},
			InitialAge: 3 * time.Second, Lifetime: time.Minute, WhileRevalidate: 30 * time.Second, IfError: 10 * time.Minute,
			ValidateAlways: true, Negative: true, Unreachable: true, Cost: 1234567 * time.Nanosecond,
			Policy: "shop/catalog", Tags: []string{"blue", "red"}, Birth: 1<<63 | 42,
			Shared: store.Shared{Token: 1_796_040_000_000_001, Body: 0xfedcba9876543210},
		},
	}
}

// encode1 is how the release before wrote heads.
func (h *head) encode1() []byte {
	e := &h.entry
	var w writer
	w.uint(e.Shared.Token)
	w.uint(uint64(h.length))
	w.uint(uint64(h.received / 1000))
	for _, d := range [...]time.Duration{e.InitialAge, e.Lifetime, e.WhileRevalidate, e.IfError} {
		w.int(d.Milliseconds())
	}
	w.uint(flagValidateAlways | flagNegative | flagUnreachable)
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

// full1 is full as far as the format before can say it.
func full1() *head {
	h := full()
	h.received, h.entry.Cost = 1_796_040_000_123_000, 0
	h.entry.Shared.Body = h.entry.Shared.Token
	return h
}

func diffHeads(want, got *head) string {
	return cmp.Diff(want, got, cmp.AllowUnexported(head{}), cmpopts.IgnoreUnexported(store.Body{}), cmpopts.EquateEmpty())
}

// TestFormats: what the golden files hold, this release and the next can read.
func TestFormats(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		format byte
		want   *head
		write  func(*head) []byte
	}{
		"head-v1.hex": {format1, full1(), (*head).encode1},
		"head-v2.hex": {format2, full(), (*head).encode},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("testdata", name)
			text := hex.EncodeToString(c.write(c.want)) + "\n"
			if *update && c.format == format {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			golden, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if string(golden) != text {
				t.Errorf("the format changed: give it another number.\nwant %s got  %s", golden, text)
			}
			data, err := hex.DecodeString(strings.TrimSpace(string(golden)))
			if err != nil {
				t.Fatal(err)
			}
			got, err := decode(c.format, data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := diffHeads(c.want, got); diff != "" {
				t.Errorf("read differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnknownFormats(t *testing.T) {
	t.Parallel()
	for _, f := range []byte{0, format + 1, 255} {
		if _, err := decode(f, full().encode()); err == nil || !strings.Contains(err.Error(), errFormat.Error()) {
			t.Errorf("format %d: %v", f, err)
		}
	}
}

func TestMalformedHeads(t *testing.T) {
	t.Parallel()
	whole := full().encode()
	for n := range whole {
		if _, err := decode(format, whole[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are a head", n, len(whole))
		}
	}
	if _, err := decode(format, append(whole, 0)); err == nil {
		t.Error("a byte too many is taken")
	}
	for name, change := range map[string]func(*head){
		"status 0":       func(h *head) { h.entry.Status = 0 },
		"status 1000":    func(h *head) { h.entry.Status = 1000 },
		"vary":           func(h *head) { h.entry.VaryValues = h.entry.VaryValues[:1] },
		"length":         func(h *head) { h.length = cachepolicy.MaxObjectSize + 1 },
		"negative":       func(h *head) { h.length = -1 },
		"too many names": func(h *head) { h.entry.Tags = make([]string, maxTags+1) },
	} {
		h := full()
		change(h)
		if _, err := decode(format, h.encode()); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func drawText(t *rapid.T, label string) string { return rapid.StringN(-1, -1, 100).Draw(t, label) }

// TestHeadsReadBack: whatever a head says.
func TestHeadsReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringN(-1, -1, 20), 0, 5)
		names := words.Draw(t, "names")
		h := &head{length: rapid.Int64Range(0, 1<<30).Draw(t, "length"), received: rapid.Int64().Draw(t, "received")}
		e := &h.entry
		e.Key.Canonical, e.URI, e.Policy = drawText(t, "key"), drawText(t, "uri"), drawText(t, "policy")
		e.Vary.Names, e.VaryValues = names, make([]string, len(names))
		e.Tags, e.Birth = words.Draw(t, "tags"), rapid.Uint64().Draw(t, "birth")
		e.Status = rapid.IntRange(100, 999).Draw(t, "status")
		e.Shared.Token, e.Shared.Body = rapid.Uint64().Draw(t, "token"), rapid.Uint64().Draw(t, "body")
		for _, d := range []*time.Duration{&e.InitialAge, &e.Lifetime, &e.WhileRevalidate, &e.IfError, &e.Cost} {
			*d = time.Duration(rapid.Int64().Draw(t, "duration"))
		}
		e.ValidateAlways, e.Negative = rapid.Bool().Draw(t, "validate"), rapid.Bool().Draw(t, "negative")
		for range rapid.IntRange(0, 4).Draw(t, "fields") {
			e.Header = append(e.Header, httpcache.Field{Name: drawText(t, "name"), Value: drawText(t, "value")})
		}
		got, err := decode(format, h.encode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := diffHeads(h, got); diff != "" {
			t.Fatalf("read differs (-written +read):\n%s", diff)
		}
		h.freshUntil()
		h.usefulUntil()
		h.on(time.Unix(0, 0), rapid.Int64().Draw(t, "now"))
	})
}

// FuzzDecode: heads are only decoded once they are authentic; all the same they
// neither panic nor allocate out of proportion.
func FuzzDecode(f *testing.F) {
	f.Add(byte(format1), full1().encode1())
	f.Add(byte(format2), full().encode())
	f.Add(byte(format2), []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, format byte, data []byte) {
		h, err := decode(format, data)
		if err != nil {
			return
		}
		if n := len(h.entry.Header) + len(h.entry.Tags) + len(h.entry.Vary.Names); n > len(data) {
			t.Errorf("%d elements from %d bytes", n, len(data))
		}
		if format == format2 {
			again, err := decode(format, h.encode())
			if err != nil {
				t.Fatalf("what was read cannot be written: %v", err)
			}
			if diff := diffHeads(h, again); diff != "" {
				t.Errorf("differs after writing (-first +second):\n%s", diff)
			}
		}
	})
}

func TestTimesOfAHead(t *testing.T) {
	t.Parallel()
	h := &head{received: 1_000_000_000}
	h.entry.InitialAge, h.entry.Lifetime, h.entry.IfError = 10*time.Second, time.Minute, time.Hour
	if got, want := h.freshUntil(), h.received+50_000_000; got != want {
		t.Errorf("fresh until %d, want %d", got, want)
	}
	if got, want := h.usefulUntil(), h.received+3650_000_000; got != want {
		t.Errorf("of use until %d, want %d", got, want)
	}
	now := time.Unix(5000, 0)
	if got := h.on(now, h.received+7_000_000).Age(now); got != 17*time.Second {
		t.Errorf("age %v, want 17s", got)
	}
	if got := h.on(now, h.received-7_000_000).Age(now); got != 10*time.Second {
		t.Errorf("age %v for a Redis whose clock went back, want 10s", got)
	}
	h.entry.ValidateAlways = true
	if h.freshUntil() != 0 {
		t.Error("what is always validated is fresh")
	}
	h.entry.Lifetime = 1 << 62
	if got := h.usefulUntil(); got > h.received+maxLife.Microseconds() {
		t.Errorf("of use until %d: more than a script can count", got)
	}
}
