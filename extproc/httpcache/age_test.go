package httpcache

import (
	"testing"
	"time"
)

// RFC 9111 §5.1: of a list the first member; what is no non-negative integer is
// ignored.
func TestAgeValue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		lines []string
		want  int64
	}{
		{nil, 0},
		{[]string{"30"}, 30},
		{[]string{" 30\t"}, 30},
		{[]string{"0030"}, 30},
		{[]string{"abc"}, 0},
		{[]string{"-7200"}, 0},
		{[]string{"+30"}, 0},
		{[]string{"7200.0"}, 0},
		{[]string{""}, 0},
		{[]string{`"30"`}, 0},
		{[]string{"2147483647"}, 1<<31 - 1},
		{[]string{"2147483648"}, 1 << 31},
		{[]string{"2147483649"}, 1 << 31},
		{[]string{"99999999999999999999999"}, 1 << 31},
		{[]string{"7200, 0"}, 7200},
		{[]string{"0, 7200"}, 0},
		{[]string{"7200", "0"}, 7200},
		{[]string{"0", "7200"}, 0},
		{[]string{"0,0"}, 0},
		{[]string{", 7200"}, 0},
		{[]string{"7200;foo=bar"}, 7200},
		{[]string{"7200 ; foo=111"}, 7200},
	} {
		var f Fields
		for _, line := range tt.lines {
			f = append(f, Field{"age", line})
		}
		if got := ageValue(f); got != seconds(tt.want) {
			t.Errorf("Age %q = %v, want %d s", tt.lines, got, tt.want)
		}
	}
}

// RFC 9111 §4.2.3.
func TestInitialAge(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		took  int // seconds from the request to the response
		lines []string
		want  int64
	}{
		{"straight from the origin", 0, []string{"Date: " + at(0)}, 0},
		{"the time in transit counts", 3, []string{"Date: " + at(0)}, 3},
		{"and is added to Age", 3, []string{"Age: 30"}, 33},
		{"no Date", 0, nil, 0},
		{"an invalid Date", 0, []string{"Date: foo"}, 0},
		{"the origin's clock is slow", 0, []string{"Date: " + at(-7200)}, 0},
		{"the origin's clock is fast", 0, []string{"Date: " + at(7200)}, 0},
		{"our own clock went back", -5, []string{"Age: 30"}, 30},
		{"an endless age", 100, []string{"Age: 99999999999"}, 1 << 31},
		{"through HTTP/1.0: the Date counts", 0, []string{"Date: " + at(-7200), "Via: 1.1 a, 1.0 b"}, 7200},
		{"the same, in full", 0, []string{"Date: " + at(-7200), "Via: HTTP/1.0 b"}, 7200},
		{"through HTTP/1.0: the larger of both", 1, []string{"Date: " + at(-60), "Age: 100", "Via: 1.0 b"}, 101},
		{"through HTTP/1.0, a fast clock", 1, []string{"Date: " + at(60), "Via: 1.0 b"}, 1},
		{"through HTTP/1.0, no Date", 1, []string{"Via: 1.0 b"}, 1},
		{"through HTTP/1.0, ages ago", 1, []string{"Date: Mon, 01 Jan 1900 00:00:00 GMT", "Via: 1.0 b"}, 1 << 31},
		{"through HTTP/1.1 and 2", 0, []string{"Date: " + at(-7200), "Via: 1.1 a, 2 b", "Via: 2.0 c"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			requested := base.Add(-seconds(int64(tt.took)))
			wantEqual(t, "InitialAge", InitialAge(ok(tt.lines...), requested, base), seconds(tt.want))
		})
	}
}

func TestInitialAgeSurvivesAbsurdClocks(t *testing.T) {
	t.Parallel()
	early, late := time.Unix(-1<<60, 0), time.Unix(1<<60, 0)
	wantEqual(t, "endless delay", InitialAge(ok(), early, late), maxDelta)
	wantEqual(t, "negative delay", InitialAge(ok(), late, early), 0)
}

func TestAppendAge(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		age  time.Duration
		want string
	}{
		{0, "0"}, {-time.Hour, "0"}, {999 * time.Millisecond, "0"}, {time.Second, "1"},
		{90*time.Second + 999*time.Millisecond, "90"}, {maxDelta, "2147483648"}, {1<<63 - 1, "2147483648"},
	} {
		wantEqual(t, "AppendAge", string(AppendAge([]byte("age: "), tt.age)), "age: "+tt.want)
	}
}
