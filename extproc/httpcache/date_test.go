package httpcache

import (
	"testing"
	"time"
)

// RFC 9110 §5.6.7, RFC 9111 §4.2.
func TestParseDate(t *testing.T) {
	t.Parallel()
	want := time.Date(1994, time.November, 6, 8, 49, 37, 0, time.UTC)
	for _, tt := range []struct {
		in   string
		want time.Time
	}{
		{"Sun, 06 Nov 1994 08:49:37 GMT", want},
		{"Sunday, 06-Nov-94 08:49:37 GMT", want},
		{"Sun Nov  6 08:49:37 1994", want},
		{"Sun Nov 06 08:49:37 1994", want},
		{"SUN, 06 NOV 1994 08:49:37 gmt", want},
		{"sUNDAY, 06-nOV-94 08:49:37 Gmt", want},
		{"sun nov  6 08:49:37 1994", want},
		{"Mon, 06 Nov 1994 08:49:37 GMT", want}, // the day's name is not checked
		{"Tue, 19 Jan 2038 14:14:08 GMT", time.Date(2038, 1, 19, 14, 14, 8, 0, time.UTC)},
		{"Sun, 21 Nov 2286 04:46:39 GMT", time.Date(2286, 11, 21, 4, 46, 39, 0, time.UTC)},
		{"Thu Aug 18 02:01:18 2050", time.Date(2050, 8, 18, 2, 1, 18, 0, time.UTC)},
		{"Wed, 31 Dec 2025 23:59:60 GMT", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)},
		{"Thu, 29 Feb 2024 00:00:00 GMT", time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)},
		{"Mon, 01 Jan 0000 00:00:00 GMT", time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		got, ok := parseDate(tt.in, base)
		if !ok || !got.Equal(tt.want) || got.Location() != time.UTC {
			t.Errorf("parseDate(%q) = %v, %v, want %v", tt.in, got, ok, tt.want)
		}
	}
}

func TestParseDateInvalid(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"", "0", "-1", "foo", ",", "Sun,", "Sunday,", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 GMT ",
		"Thu, 18 Aug 2050 02:01:18 UTC",
		"Thu, 18 Aug 2050 02:01:18 AEST",
		"Thu, 18 Aug 2050 02:01:18 +0000",
		"Thu, 18 Aug 50 02:01:18 GMT",
		"Thu 18 Aug 2050 02:01:18 GMT",
		"Thu, 18  Aug  2050 02:01:18 GMT",
		"Thu, 18-Aug-2050 02:01:18 GMT",
		"Thu, 18-Aug-50 02:01:18 GMT",
		"Thu, 18 Aug 2050 02.01.18 GMT",
		"Thu, 18 Aug 2050 2:01:18 GMT",
		"Thu, 8 Aug 2050 02:01:18 GMT",
		"Thu, 18 Aug 2050 24:00:00 GMT",
		"Thu, 18 Aug 2050 02:60:18 GMT",
		"Thu, 18 Aug 2050 02:01:61 GMT",
		"Thu, 31 Feb 2050 02:01:18 GMT",
		"Thu, 00 Aug 2050 02:01:18 GMT",
		"Thu, 18 Foo 2050 02:01:18 GMT",
		"Foo, 18 Aug 2050 02:01:18 GMT",
		"Thu, +8 Aug 2050 02:01:18 GMT",
		"Thu, 18 Aug -050 02:01:18 GMT",
		"Thursday, 18-Aug-2050 02:01:18 GMT",
		"Thursday, 18-Aug-5x 02:01:18 GMT",
		"Thurs, 18-Aug-50 02:01:18 GMT",
		"Thursday 18-Aug-50 02:01:18 GMT",
		"Thu Aug 18 02:01:18 2050 GMT",
		"Thu Aug  8 02:01:18 GMT 2050",
		"Thu Aug 8  02:01:18 2050",
		"Thu Aug    02:01:18 2050",
		"Thu, 18 Aug 2050 02:01:18 GMT, Thu, 18 Aug 2050 02:01:18 GMT",
	} {
		if got, ok := parseDate(in, base); ok {
			t.Errorf("parseDate(%q) = %v, want invalid", in, got)
		}
	}
}

// RFC 9110 §5.6.7: a two-digit year that appears to be more than 50 years in the
// future is in the past.
func TestParseDateTwoDigitYear(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		ref  int // year; 0 for a zero time
		in   string
		want int
	}{
		{2026, "50", 2050}, {2026, "76", 2076}, {2026, "77", 1977}, {2026, "99", 1999}, {2026, "00", 2000},
		{2060, "00", 2100}, {2060, "11", 2011}, {1990, "40", 2040}, {1990, "41", 1941},
		{0, "68", 2068}, {0, "69", 1969},
	} {
		var ref time.Time
		if tt.ref != 0 {
			ref = time.Date(tt.ref, 6, 1, 0, 0, 0, 0, time.UTC)
		}
		got, ok := parseDate("Thursday, 18-Aug-"+tt.in+" 02:01:18 GMT", ref)
		if !ok || got.Year() != tt.want {
			t.Errorf("year %s seen from %d = %v, %v, want %d", tt.in, tt.ref, got, ok, tt.want)
		}
	}
}

// RFC 9111 §4.2.1: several values are the same, or the response is stale.
func TestFieldDateSeveralLines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		f              Fields
		present, valid bool
	}{
		{fields("x: y"), false, false},
		{fields("expires: " + at(0)), true, true},
		{fields("expires: "+at(0), "expires: "+at(0)), true, true},
		{fields("expires: "+at(0), "expires: "+at(1)), true, false},
		{fields("expires: " + at(0) + ", " + at(0)), true, false},
		{fields("expires:"), true, false},
	} {
		_, present, valid := fieldDate(tt.f, "expires", base)
		if present != tt.present || valid != tt.valid {
			t.Errorf("%v: present %v, valid %v, want %v, %v", tt.f, present, valid, tt.present, tt.valid)
		}
	}
}
