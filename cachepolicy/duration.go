package cachepolicy

import (
	"errors"
	"fmt"
	"strings"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// maxDurationParts and maxDurationDigits are GEP-2257's bounds.
const (
	maxDurationParts  = 4
	maxDurationDigits = 5
)

// ParseDuration reads a duration as the Gateway API writes it (GEP-2257): up to
// four parts of up to five digits and a unit (h, m, s, ms), such as 250ms or
// 1m30s. The error says what would be right; it does not repeat the value.
func ParseDuration(s string) (time.Duration, error) {
	if strings.HasPrefix(s, "-") {
		return 0, errors.New("must not be negative")
	}
	rest, parts := s, 0
	for rest != "" {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		unit := unitLength(rest[digits:])
		if digits == 0 || digits > maxDurationDigits || unit == 0 || parts == maxDurationParts {
			return 0, errDuration()
		}
		rest = rest[digits+unit:]
		parts++
	}
	if parts == 0 {
		return 0, errDuration()
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, errDuration()
	}
	return d, nil
}

func errDuration() error {
	return errors.New(`must be a duration of up to 4 parts of up to 5 digits, with the units h, m, s, ms, ` +
		`such as "250ms" or "1m30s"`)
}

// unitLength is the length of the unit s begins with, 0 if it begins with none.
func unitLength(s string) int {
	switch {
	case strings.HasPrefix(s, "ms"):
		return 2
	case strings.HasPrefix(s, "h"), strings.HasPrefix(s, "m"), strings.HasPrefix(s, "s"):
		return 1
	}
	return 0
}

// boundedDuration parses d and holds it to most.
func boundedDuration(d gatewayv1.Duration, most time.Duration) (time.Duration, error) {
	v, err := ParseDuration(string(d))
	if err != nil {
		return 0, fmt.Errorf("%q: %w", d, err)
	}
	if v > most {
		return 0, fmt.Errorf("%q: must be at most %s", d, shortDuration(most))
	}
	return v, nil
}

// shortDuration writes d as a policy would: 24h, not 24h0m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
