package serve

import (
	"context"
	"errors"
)

// assemble makes the parts of a process.
func assemble(context.Context, environment) (*parts, error) {
	return nil, errors.New("the ext_proc service is not wired yet")
}
