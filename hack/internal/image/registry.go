// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// inputsLabel carries a hash of all that went into an image, so that an image that is already there need not be built
// to know that it is the same.
const inputsLabel = "dev.capstan.inputs"

// A Registry is where images go.
type Registry struct {
	// Host as in "registry.localhost:5000".
	Host string
	// Transport reaches it; nil is http.DefaultTransport.
	Transport http.RoundTripper
}

// Ensure builds the image of a Spec and pushes it as repository:tag, unless the registry has it already. It returns the
// full reference.
func (r *Registry) Ensure(ctx context.Context, repository, tag string, spec Spec) (string, error) {
	ref := fmt.Sprintf("%s/%s:%s", r.Host, repository, tag)
	inputs, err := hash(spec)
	if err != nil {
		return "", err
	}
	have, err := r.inputs(ctx, ref)
	if err == nil && have == inputs {
		return ref, nil
	}
	spec.Labels = maps.Clone(spec.Labels)
	if spec.Labels == nil {
		spec.Labels = map[string]string{}
	}
	spec.Labels[inputsLabel] = inputs
	img, err := Build(ctx, spec)
	if err != nil {
		return "", fmt.Errorf("cannot build %q: %w", ref, err)
	}
	return ref, r.Push(ctx, ref, img)
}

// Push sends an image to the registry under a full reference.
func (r *Registry) Push(ctx context.Context, ref string, img v1.Image) error {
	tag, err := name.ParseReference(ref)
	if err != nil {
		return fmt.Errorf("cannot push %q: %w", ref, err)
	}
	if err := remote.Write(tag, img, r.options(ctx)...); err != nil {
		return fmt.Errorf("cannot push %q: %w", ref, err)
	}
	return nil
}

// inputs returns the label of an image in the registry, and an error when the image is not there.
func (r *Registry) inputs(ctx context.Context, ref string) (string, error) {
	tag, err := name.ParseReference(ref)
	if err != nil {
		return "", fmt.Errorf("cannot read %q: %w", ref, err)
	}
	img, err := remote.Image(tag, r.options(ctx)...)
	if err != nil {
		return "", fmt.Errorf("cannot read %q: %w", ref, err)
	}
	cfg, err := img.ConfigFile()
	if err != nil {
		return "", fmt.Errorf("cannot read the configuration of %q: %w", ref, err)
	}
	return cfg.Config.Labels[inputsLabel], nil
}

func (r *Registry) options(ctx context.Context) []remote.Option {
	transport := r.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	return []remote.Option{remote.WithContext(ctx), remote.WithTransport(transport)}
}

// hash covers the Spec and the content of its files, not where they lie.
func hash(spec Spec) (string, error) {
	files := make([]File, len(spec.Files))
	for i, f := range spec.Files {
		digest, err := contentHash(f)
		if err != nil {
			return "", fmt.Errorf("cannot read %q: %w", f.Path, err)
		}
		files[i] = File{Path: f.Path, Mode: f.Mode, Link: f.Link, Content: digest}
	}
	spec.Files = files
	sum := sha256.New()
	for _, l := range spec.Base {
		digest, err := l.Digest()
		if err != nil {
			return "", fmt.Errorf("cannot hash a layer: %w", err)
		}
		_, _ = fmt.Fprintln(sum, digest)
	}
	spec.Base = nil
	if _, err := fmt.Fprintf(sum, "%#v", spec); err != nil {
		return "", fmt.Errorf("cannot hash an image: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func contentHash(f File) ([]byte, error) {
	content, _, err := open(f)
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, content); err != nil {
		return nil, err
	}
	return sum.Sum(nil), nil
}
