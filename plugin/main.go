// SPDX-License-Identifier: Apache-2.0

// Command kubectl-capstan is a plugin of kubectl for people who use Algorithms and Databases: one screen for each, the acts of day two as
// edits of the spec, and what helps when something is wrong. It has the rights of its user, and no others.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the linker.
var version = "v0.0.0"

// An exit is a failure with an exit code of its own.
type exit struct {
	code int
	err  error
}

func (e exit) Error() string { return e.err.Error() }
func (e exit) Unwrap() error { return e.err }

// Exit codes beside 0 and 1.
const (
	// late: what --wait waits for did not come in time.
	late = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newRoot().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubectl capstan:", err)
		code := 1
		if e := (exit{}); errors.As(err, &e) {
			code = e.code
		}
		os.Exit(code)
	}
}
