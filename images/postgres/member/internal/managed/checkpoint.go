// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"fmt"
)

// Checkpoint lets the server behind a socket's folder write at once what it holds in memory. One that has nothing to write does nothing.
func Checkpoint(ctx context.Context, socket string) error {
	conn, err := connect(ctx, socket, "postgres")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "checkpoint"); err != nil {
		return fmt.Errorf("cannot make a checkpoint: %w", err)
	}
	return nil
}
