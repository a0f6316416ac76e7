package httpcache

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// RFC 9110 §14.1.1, §14.1.2, §14.2. The representation has 1000 bytes.
func TestParseRange(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		value   string
		outcome RangeOutcome
		want    []ByteRange
	}{
		{"bytes=0-99", RangePartial, []ByteRange{{0, 100}}},
		{"bytes=0-0", RangePartial, []ByteRange{{0, 1}}},
		{"bytes=999-999", RangePartial, []ByteRange{{999, 1}}},
		{"bytes=1-", RangePartial, []ByteRange{{1, 999}}},
		{"bytes=0-", RangePartial, []ByteRange{{0, 1000}}},
		{"bytes=900-5000", RangePartial, []ByteRange{{900, 100}}},
		{"bytes=900-99999999999999999999999", RangePartial, []ByteRange{{900, 100}}},
		{"bytes=-1", RangePartial, []ByteRange{{999, 1}}},
		{"bytes=-5000", RangePartial, []ByteRange{{0, 1000}}},
		{"bytes=-99999999999999999999999", RangePartial, []ByteRange{{0, 1000}}},
		{" Bytes=0-99 ", RangePartial, []ByteRange{{0, 100}}},
		{"bytes=0-9, 20-29", RangePartial, []ByteRange{{0, 10}, {20, 10}}},
		{"bytes= 20-29 ,,0-9,-1", RangePartial, []ByteRange{{20, 10}, {0, 10}, {999, 1}}},
		{"bytes=0-9, 5000-", RangePartial, []ByteRange{{0, 10}}},
		{"bytes=0-9,10-19,20-29", RangePartial, []ByteRange{{0, 10}, {10, 10}, {20, 10}}}, // apart, if only just
		{"bytes=0-99, 50-149", RangePartial, []ByteRange{{0, 100}, {50, 100}}},

		{"bytes=1000-", RangeUnsatisfiable, nil},
		{"bytes=5000-6000", RangeUnsatisfiable, nil},
		{"bytes=99999999999999999999999-", RangeUnsatisfiable, nil},
		{"bytes=-0", RangeUnsatisfiable, nil},
		{"bytes=1000-, -0, 2000-3000", RangeUnsatisfiable, nil},

		{"", RangeIgnored, nil},
		{"bytes", RangeIgnored, nil},
		{"bytes=", RangeIgnored, nil},
		{"bytes=,", RangeIgnored, nil},
		{"lines=0-9", RangeIgnored, nil},
		{"bytes =0-9", RangeIgnored, nil},
		{"bytes=9-0", RangeIgnored, nil},
		{"bytes=0-9, 9-0", RangeIgnored, nil},
		{"bytes=5", RangeIgnored, nil},
		{"bytes=-", RangeIgnored, nil},
		{"bytes=--1", RangeIgnored, nil},
		{"bytes=0--1", RangeIgnored, nil},
		{"bytes=0-9-9", RangeIgnored, nil},
		{"bytes=+0-9", RangeIgnored, nil},
		{"bytes=0x0-9", RangeIgnored, nil},
		{"bytes=0 -9", RangeIgnored, nil},
		{"bytes=a-b", RangeIgnored, nil},
		{"bytes=0-9;x", RangeIgnored, nil},
		{"bytes=0-9, lines=3-4", RangeIgnored, nil},

		// RFC 9110 §17.15: who asks for too much gets the whole.
		{"bytes=0-,0-", RangeIgnored, nil},
		{"bytes=0-9,0-9,0-9", RangeIgnored, nil},
		{"bytes=0-99,50-149,140-159", RangeIgnored, nil},
		{"bytes=" + strings.Repeat("0-0,", 1000), RangeIgnored, nil},
		{"bytes=" + apart(maxRanges+1), RangeIgnored, nil},
	} {
		ranges, outcome := ParseRange(tt.value, 1000)
		if outcome != tt.outcome || !cmp.Equal(ranges, tt.want) {
			t.Errorf("ParseRange(%.40q) = %v, %v, want %v, %v", tt.value, ranges, outcome, tt.want, tt.outcome)
		}
	}
	if ranges, outcome := ParseRange("bytes="+apart(maxRanges),
		1000); outcome != RangePartial || len(ranges) != maxRanges {
		t.Errorf("%d ranges: %v, %v", maxRanges, ranges, outcome)
	}
}

// apart lists n ranges of one byte that do not touch.
func apart(n int) string {
	specs := make([]string, n)
	for i := range specs {
		specs[i] = fmt.Sprintf("%d-%d", 10*i, 10*i)
	}
	return strings.Join(specs, ",")
}

func TestParseRangeOfNothing(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{0, -1} {
		for _, value := range []string{"bytes=0-", "bytes=-5", "bytes=0-0"} {
			if ranges, outcome := ParseRange(value, size); outcome != RangeIgnored || ranges != nil {
				t.Errorf("%s of %d bytes: %v, %v", value, size, ranges, outcome)
			}
		}
	}
}

// RFC 9110 §13.1.5, §8.8.2.2, §8.8.3.2.
func TestRangeApplies(t *testing.T) {
	t.Parallel()
	lm := "Last-Modified: " + at(-3000)
	date := "Date: " + at(0)
	for _, tt := range []struct {
		name   string
		stored Fields
		ifRng  []string
		want   bool
	}{
		{"no If-Range", fields(), nil, true},
		{"the same strong tag", fields(`ETag: "a"`), []string{`"a"`}, true},
		{"another tag", fields(`ETag: "a"`), []string{`"b"`}, false},
		{"weak tags never match strongly", fields(`ETag: W/"a"`), []string{`W/"a"`}, false},
		{"a weak one against a strong one", fields(`ETag: "a"`), []string{`W/"a"`}, false},
		{"a tag, none stored", fields(lm, date), []string{`"a"`}, false},
		{"a tag without quotes", fields("ETag: a"), []string{"a"}, false},
		{"a tag whose stored form has no quotes", fields("ETag: a"), []string{`"a"`}, false},
		{"exactly the date", fields(lm, date), []string{at(-3000)}, true},
		{"the date in another form", fields(lm, date), []string{"Monday, 30-Nov-26 11:10:00 GMT"}, true},
		{"a later date", fields(lm, date), []string{at(-2999)}, false},
		{"an earlier date", fields(lm, date), []string{at(-3001)}, false},
		{"modified a minute before Date", fields("Last-Modified: "+at(-60), date), []string{at(-60)}, true},
		{"modified just before Date: not strong", fields("Last-Modified: "+at(-59), date), []string{at(-59)}, false},
		{"no Date: not strong", fields(lm), []string{at(-3000)}, false},
		{"no Last-Modified", fields(date), []string{at(-3000)}, false},
		{"two lines", fields(`ETag: "a"`), []string{`"a"`, `"a"`}, false},
		{"empty", fields(`ETag: "a"`), []string{""}, false},
		{"no date", fields(lm, date), []string{"yesterday"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var req Fields
			for _, line := range tt.ifRng {
				req = append(req, Field{"if-range", line})
			}
			wantEqual(t, "RangeApplies", RangeApplies(req, tt.stored), tt.want)
		})
	}
}

// RFC 9110 §14.4.
func TestContentRange(t *testing.T) {
	t.Parallel()
	wantEqual(t, "a range", string(AppendContentRange(nil, ByteRange{0, 100}, 1000)), "bytes 0-99/1000")
	wantEqual(t, "the last byte", string(AppendContentRange(nil, ByteRange{999, 1}, 1000)), "bytes 999-999/1000")
	wantEqual(t, "none", string(AppendUnsatisfiedRange(nil, 1000)), "bytes */1000")
	for value, want := range map[string]bool{
		"bytes 0-99/1000": true, "bytes 0-99/*": true, "bytes */1000": true, " BYTES 0-9/10": true,
		"": false, "bytes": false, "bytes 0-99": false, "bytes x-y/z": false, "items 0-9/10": false, "bytes=0-9/10": false,
		"bytes 0-9/": false, "bytes -9/10": false,
	} {
		wantEqual(t, value, isContentRange(value), want)
	}
}
