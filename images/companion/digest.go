// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/capstan-dev/capstan/images/companion/internal/model"
)

// digestCmd prints the digest of a model.
type digestCmd struct {
	Dir string `arg:"" help:"Folder of the model." type:"existingdir"`
}

// Run prints the digest alone, so that pipelines can use it; the log has the rest.
func (c *digestCmd) Run(ctx context.Context, stdout io.Writer, log *slog.Logger) error {
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		return fmt.Errorf("cannot open the model: %w", err)
	}
	defer func() { _ = root.Close() }()
	m, err := model.Of(ctx, root)
	if err != nil {
		return fmt.Errorf("cannot read the model: %w", err)
	}
	log.Info("read", "files", len(m), "size", m.Size())
	_, err = fmt.Fprintln(stdout, m.Digest())
	return err
}
