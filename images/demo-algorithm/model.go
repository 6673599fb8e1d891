// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/capstan-dev/capstan/images/demo-training/model"
)

// A loaded model: the digest of its file, and what a demo training has learned, if the file is of one.
type loaded struct {
	model.Model

	digest string
}

// maxModel is more than a model of a demo training has. Other models can be of any size, and are not kept in memory.
const maxModel = 64 << 10

// loadModel reads all of a model, as a server does that would use it. Without a file there is none.
func loadModel(path string) (loaded, error) {
	if path == "" {
		return loaded{}, nil
	}
	f, err := os.Open(path) //nolint:gosec // Whoever runs the server names its model.
	if err != nil {
		return loaded{}, fmt.Errorf("cannot load the model: %w", err)
	}
	defer func() { _ = f.Close() }()
	sum, head := sha256.New(), &bytes.Buffer{}
	if _, err := io.CopyN(io.MultiWriter(sum, head), f, maxModel); err != nil && !errors.Is(err, io.EOF) {
		return loaded{}, fmt.Errorf("cannot load the model %s: %w", path, err)
	}
	if _, err := io.Copy(sum, f); err != nil {
		return loaded{}, fmt.Errorf("cannot load the model %s: %w", path, err)
	}
	m, _ := model.Read(head.Bytes())
	return loaded{Model: m, digest: fmt.Sprintf("sha256:%x", sum.Sum(nil))}, nil
}

// options of a server with the model.
func (m loaded) options(o Options) Options {
	o.Version, o.ErrorRate = cmp.Or(m.Version, o.Version), max(o.ErrorRate, m.ErrorRate)
	return o
}
