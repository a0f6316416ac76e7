package httpcache

import (
	"strings"
	"time"
)

// parseDate parses an HTTP-date in any of its three forms (RFC 9110 §5.6.7):
//
//	Sun, 06 Nov 1994 08:49:37 GMT     IMF-fixdate
//	Sunday, 06-Nov-94 08:49:37 GMT    RFC 850
//	Sun Nov  6 08:49:37 1994          asctime
//
// Letters are compared without case and nothing else is forgiven: a date with
// another zone than GMT is invalid (RFC 9111 §4.2). The day's name is not
// checked against the date. A two-digit year that lies more than 50 years after
// ref is of the century before; a zero ref stands for the year 2018.
func parseDate(s string, ref time.Time) (time.Time, bool) {
	switch comma := strings.IndexByte(s, ','); {
	case comma == 3:
		return parseIMFFixdate(s)
	case comma > 3:
		return parseRFC850(s[:comma], s[comma+1:], ref)
	}
	return parseASCTime(s)
}

func parseIMFFixdate(s string) (time.Time, bool) {
	// 0123456789012345678901234567 8
	// Sun, 06 Nov 1994 08:49:37 GMT
	if len(s) != 29 || !isDay(s[:3], 3) || s[4] != ' ' || s[7] != ' ' || s[11] != ' ' || s[16] != ' ' ||
		!strings.EqualFold(s[25:], " GMT") {
		return time.Time{}, false
	}
	return makeDate(number(s[12:16]), month(s[8:11]), number(s[5:7]), s[17:25])
}

func parseRFC850(day, s string, ref time.Time) (time.Time, bool) {
	// 01234567890123456789012
	//  06-Nov-94 08:49:37 GMT
	if len(s) != 23 || !isDay(day, 9) || s[0] != ' ' || s[3] != '-' || s[7] != '-' || s[10] != ' ' ||
		!strings.EqualFold(s[19:], " GMT") {
		return time.Time{}, false
	}
	year := number(s[8:10])
	if year < 0 {
		return time.Time{}, false
	}
	refYear := 2018
	if !ref.IsZero() {
		refYear = ref.UTC().Year()
	}
	year += refYear - refYear%100
	switch {
	case year > refYear+50:
		year -= 100
	case year <= refYear-50:
		year += 100
	}
	return makeDate(year, month(s[4:7]), number(s[1:3]), s[11:19])
}

func parseASCTime(s string) (time.Time, bool) {
	// 012345678901234567890123
	// Sun Nov  6 08:49:37 1994
	if len(s) != 24 || !isDay(s[:3], 3) || s[3] != ' ' || s[7] != ' ' || s[10] != ' ' || s[19] != ' ' {
		return time.Time{}, false
	}
	day := s[8:10]
	if day[0] == ' ' {
		day = day[1:]
	}
	return makeDate(number(s[20:24]), month(s[4:7]), number(day), s[11:19])
}

// isDay reports whether s is the name of a day, cut to at most width letters.
func isDay(s string, width int) bool {
	for d := time.Sunday; d <= time.Saturday; d++ {
		if name := d.String(); strings.EqualFold(s, name[:min(width, len(name))]) {
			return true
		}
	}
	return false
}

// month returns the month with that three-letter name, or 0.
func month(s string) time.Month {
	for m := time.January; m <= time.December; m++ {
		if strings.EqualFold(s, m.String()[:3]) {
			return m
		}
	}
	return 0
}

// number returns the value of a string of digits, or -1. The caller bounds its
// length.
func number(s string) int {
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return -1
		}
		n = n*10 + int(s[i]-'0')
	}
	return n
}

// makeDate checks the ranges of a date and the clock hh:mm:ss. A leap second is
// the second after (RFC 9110 §5.6.7 allows :60).
func makeDate(year int, mon time.Month, day int, clock string) (time.Time, bool) {
	hour, minute, second := number(clock[:2]), number(clock[3:5]), number(clock[6:])
	if year < 0 || mon == 0 || day < 1 || clock[2] != ':' || clock[5] != ':' ||
		hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60 {
		return time.Time{}, false
	}
	midnight := time.Date(year, mon, day, 0, 0, 0, 0, time.UTC)
	if midnight.Day() != day {
		return time.Time{}, false // 31 February
	}
	clockTime := time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second
	return midnight.Add(clockTime), true
}

// fieldDate parses a field that holds one HTTP-date. More than one line is as
// invalid as any other list, unless all say the same (RFC 9111 §4.2.1).
func fieldDate(f Fields, name string, ref time.Time) (t time.Time, present, valid bool) {
	value := ""
	for i := range f {
		switch {
		case f[i].Name != name:
		case !present:
			value, present = f[i].Value, true
		case f[i].Value != value:
			return time.Time{}, true, false
		}
	}
	if !present {
		return time.Time{}, false, false
	}
	t, valid = parseDate(value, ref)
	return t, true, valid
}
