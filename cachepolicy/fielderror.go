package cachepolicy

import "strings"

// FieldError is one fault of a policy. Reason names the value and what would be
// right, so that it can be mended without looking anything up.
type FieldError struct {
	Path   string // from the root of the object: spec.negativeTTL[1].ttl
	Reason string
}

// Error returns path and reason.
func (e FieldError) Error() string { return e.Path + ": " + e.Reason }

// FieldErrors are all faults of a policy, in the order of its fields.
type FieldErrors []FieldError

// Error returns the faults, divided by "; ".
func (e FieldErrors) Error() string {
	parts := make([]string, len(e))
	for i := range e {
		parts[i] = e[i].Error()
	}
	return strings.Join(parts, "; ")
}
