package policydir

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/weirproxy/weir/cachepolicy"
)

// MaxErrors bounds the faults that one load reports; a last one says that there
// are more.
const MaxErrors = 100

// FileError is a fault of a policy file.
type FileError struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"` // from 1; 0 if the fault is the file's as a whole
	Path   string `json:"path,omitempty"` // of the field, such as spec.ttl.min
	Reason string `json:"reason"`
}

// Error returns file:line: path: reason.
func (e FileError) Error() string {
	s := e.File + ": "
	if e.Line > 0 {
		s = e.File + ":" + strconv.Itoa(e.Line) + ": "
	}
	if e.Path != "" {
		s += e.Path + ": "
	}
	return s + e.Reason
}

// bound cuts the list to MaxErrors.
func bound(errs []FileError) []FileError {
	if len(errs) <= MaxErrors {
		return errs
	}
	more := len(errs) - (MaxErrors - 1)
	last := errs[MaxErrors-1]
	return append(errs[:MaxErrors-1:MaxErrors-1],
		FileError{File: last.File, Line: last.Line, Reason: strconv.Itoa(more) + " more errors from here on"})
}

// located gives the faults of a document's fields their file and lines, and
// brings them into the order of the lines.
func (d *Document) located(errs []cachepolicy.FieldError) []FileError {
	out := make([]FileError, len(errs))
	for i, e := range errs {
		out[i] = FileError{File: d.File, Line: d.Line(e.Path), Path: e.Path, Reason: e.Reason}
	}
	slices.SortStableFunc(out, func(a, b FileError) int { return cmp.Compare(a.Line, b.Line) })
	return out
}
