package admin

import (
	"context"
	"fmt"
	"net/http"

	"github.com/weirproxy/weir/extproc/warm"
)

// Backend answers for the process. Its methods are safe for concurrent use. An
// error that is an [*Error] reaches the caller as it is; any other is a fault of
// weir's.
type Backend interface {
	Status() Status
	Explain(ctx context.Context, r ExplainRequest) (any, error)
	Entries(ctx context.Context, r EntriesRequest) (EntriesPage, error)
	Top(ctx context.Context, r TopRequest) (TopResult, error)
	Warm(ctx context.Context, r WarmRequest) (WarmResult, error)
	// WarmJobs returns the last warm-up jobs, oldest first.
	WarmJobs() []warm.Job
	Invalidate(ctx context.Context, r InvalidateRequest) (InvalidateResult, error)
}

// Error is an error with its HTTP status and what the caller can do about it.
type Error struct {
	Status  int    `json:"-"`
	Message string `json:"error"`
	Hint    string `json:"hint,omitempty"`
}

// Error returns message and hint.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + " (" + e.Hint + ")"
}

// BadRequest returns an Error of status 400.
func BadRequest(hint, format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...), Hint: hint}
}
