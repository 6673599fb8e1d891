// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
	"github.com/capstan-dev/capstan/images/companion/internal/model"
)

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// expectations of a model. What is empty compares nothing.
type expectations struct {
	Digest string `help:"Digest that the model must have, as companion digest prints it." placeholder:"sha256:…"`
	Size   int64  `help:"Size that its files must have together, in bytes."               placeholder:"BYTES"`
}

// validate what is expected.
func (e *expectations) validate() error {
	if e.Digest == "" || digestPattern.MatchString(e.Digest) {
		return nil
	}
	return failure.New(failure.Invalid, fmt.Sprintf("digest %q is none", e.Digest),
		"write sha256: and 64 hexadecimal digits, as companion digest prints them")
}

// verify that a model is the requested one.
func (e *expectations) verify(m model.Manifest) error {
	if size := m.Size(); e.Size > 0 && size != e.Size {
		return e.wrongSize(size)
	}
	if digest := m.Digest(); e.Digest != "" && digest != e.Digest {
		return failure.New(failure.DigestMismatch, fmt.Sprintf("the model has digest %s instead of %s", digest, e.Digest),
			"correct spec.model.digest if the model is the right one; otherwise find out who replaced it")
	}
	return nil
}

func (e *expectations) wrongSize(size int64) error {
	return failure.New(failure.SizeMismatch, fmt.Sprintf("the model has %d bytes instead of %d", size, e.Size),
		"correct the size in spec.model.digest if the model is the right one; otherwise upload it again")
}

// verifyCmd verifies a model that was put there by hand.
type verifyCmd struct {
	expectations

	Model string `help:"Folder of the model." placeholder:"DIR" required:""`
}

// Run reads the model, all of it if there is a digest.
func (c *verifyCmd) Run(ctx context.Context, log *slog.Logger) error {
	if err := c.validate(); err != nil {
		return err
	}
	root, err := os.OpenRoot(c.Model)
	if err != nil {
		return unreadable(err)
	}
	defer func() { _ = root.Close() }()
	size, files, err := model.SizeOf(root)
	switch {
	case err != nil:
		return unreadable(err)
	case files == 0:
		return failure.New(failure.NotFound, "the volume has no files where the model should be", "correct the path in spec.model.uri, or fill the volume")
	case c.Size > 0 && size != c.Size:
		return c.wrongSize(size)
	}
	log.Info("verifying", "files", files, "size", size)
	if c.Digest == "" {
		return nil
	}
	m, err := model.Of(ctx, root)
	if err != nil {
		return unreadable(err)
	}
	return c.verify(m)
}

// unreadable explains why a volume cannot be read.
func unreadable(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return &failure.Failure{
			Reason: failure.NotFound, Cause: "the volume has nothing where the model should be", Err: err,
			Remedy: "correct the path in spec.model.uri, or fill the volume",
		}
	}
	return &failure.Failure{
		Reason: failure.Invalid, Cause: "cannot read the model on the volume: " + failure.Of(err).Cause, Err: err,
		Remedy: "let the user of the pod read all of it",
	}
}
