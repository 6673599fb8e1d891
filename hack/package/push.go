// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

type pushCmd struct {
	Registry string   `default:"${registry}"                              help:"Registry to push to, as in registry.localhost:5000."`
	Only     []string `help:"Names of what to push. Default: everything." placeholder:"NAME"`
}

// Run pushes what was built of the project's version, all platforms of an artifact under one tag.
func (c *pushCmd) Run(ctx context.Context, p *project) error {
	selected, err := selection(c.Only)
	if err != nil {
		return err
	}
	for _, a := range selected {
		ref := a.reference(c.Registry, p.version)
		if err := p.Step("push "+ref, nil, func() error { return p.push(ctx, a, ref) }); err != nil {
			return err
		}
	}
	return nil
}

// push does nothing when the registry has the same content, and refuses to replace other content.
func (p *project) push(ctx context.Context, a artifact, ref string) error {
	files, err := a.built(p.output, p.version)
	if err != nil {
		return err
	}
	want, err := localContent(files)
	if err != nil {
		return err
	}
	have, err := remoteContent(ctx, ref)
	if err != nil {
		return err
	}
	if slices.Equal(have, want) {
		return nil
	}
	if len(have) > 0 {
		return fmt.Errorf("cannot push %s: the registry has other content under this version, and nodes that pulled it "+
			"would keep that: set VERSION to a higher one", ref)
	}
	// An xpkg is an image; the CLI pushes any.
	return run(exec.CommandContext(ctx, p.crossplane, "xpkg", "push", "--package-files="+strings.Join(files, ","), ref))
}

// localContent returns the digests of the configurations of images in files, sorted. A configuration names the content of
// all layers, and unlike the image itself it is the same before and after a push, which annotates layers.
func localContent(files []string) ([]v1.Hash, error) {
	images := make([]v1.Image, 0, len(files))
	for _, file := range files {
		img, err := tarball.ImageFromPath(file, nil)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", file, err)
		}
		images = append(images, img)
	}
	return content(images)
}

// remoteContent returns the same of what a registry has under a tag: nothing when there is no such tag.
func remoteContent(ctx context.Context, ref string) ([]v1.Hash, error) {
	tag, err := name.NewTag(ref)
	if err != nil {
		return nil, fmt.Errorf("cannot push to %q: %w", ref, err)
	}
	found, err := remote.Get(tag, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	var refused *transport.Error
	if errors.As(err, &refused) && refused.StatusCode == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot ask the registry for %s: %w", ref, err)
	}
	if !found.MediaType.IsIndex() {
		img, err := found.Image()
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", ref, err)
		}
		return content([]v1.Image{img})
	}
	index, err := found.ImageIndex()
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", ref, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", ref, err)
	}
	images := make([]v1.Image, 0, len(manifest.Manifests))
	for _, m := range manifest.Manifests {
		img, err := index.Image(m.Digest)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", ref, err)
		}
		images = append(images, img)
	}
	return content(images)
}

func content(images []v1.Image) ([]v1.Hash, error) {
	hashes := make([]v1.Hash, 0, len(images))
	for _, img := range images {
		h, err := img.ConfigName()
		if err != nil {
			return nil, fmt.Errorf("cannot read the configuration of an image: %w", err)
		}
		hashes = append(hashes, h)
	}
	slices.SortFunc(hashes, func(a, b v1.Hash) int { return strings.Compare(a.Hex, b.Hex) })
	return hashes, nil
}
