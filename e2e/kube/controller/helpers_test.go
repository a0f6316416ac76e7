package controller_test

import (
	"context"
	"strconv"
	"time"
)

// background is for what is cleaned up after the test's own context has ended.
func background() context.Context { return context.Background() }

// rand is a text that was not there before.
func rand() string { return strconv.FormatInt(time.Now().UnixNano(), 36) }
