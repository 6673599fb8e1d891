// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// layerAnnotation marks the layer of an image that is a package. Files of images carry it in a label, because they cannot annotate layers.
const layerAnnotation = "io.crossplane.xpkg"

// A releasedImage is an artifact as it goes to the registry.
type releasedImage struct {
	artifact

	// content is the index of all platforms, or the image that fits all.
	content remote.Taggable
	digest  v1.Hash
	// programs are what runs, one for each platform.
	programs [][]byte
}

// build builds everything. The digests of images become part of the function, and the digests of packages part of the Configuration.
func (c *releaseCmd) build(ctx context.Context, p *project) ([]releasedImage, error) {
	p.pins = map[string]string{}
	built := make([]releasedImage, 0, len(artifacts()))
	for _, a := range artifacts() {
		build := buildCmd{Platform: c.Platform, Only: []string{a.Name}}
		if err := build.Run(ctx, p); err != nil {
			return nil, err
		}
		files, err := a.built(p.output, p.version)
		if err != nil {
			return nil, err
		}
		img, err := assemble(a, files)
		if err != nil {
			return nil, fmt.Errorf("cannot put %s together: %w", a.Name, err)
		}
		p.pins[a.repository(publicRegistry)] = img.digest.String()
		built = append(built, img)
	}
	return built, nil
}

// assemble makes one image of the files of all platforms.
func assemble(a artifact, files []string) (releasedImage, error) {
	result := releasedImage{artifact: a}
	slices.Sort(files)
	index := mutate.AppendManifests(empty.Index)
	for _, file := range files {
		img, err := tarball.ImageFromPath(file, nil)
		if err != nil {
			return result, fmt.Errorf("cannot read %s: %w", filepath.Base(file), err)
		}
		if img, err = annotated(img); err != nil {
			return result, fmt.Errorf("cannot annotate %s: %w", filepath.Base(file), err)
		}
		if a.Program == "" {
			result.content = img
			result.digest, err = img.Digest()
			return result, err
		}
		program, err := fileOf(img, a.program())
		if err != nil {
			return result, err
		}
		result.programs = append(result.programs, program)
		config, err := img.ConfigFile()
		if err != nil {
			return result, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: config.OS, Architecture: config.Architecture}},
		})
	}
	digest, err := index.Digest()
	result.content, result.digest = index, digest
	return result, err
}

// annotated marks layers by what labels say of them, as `crossplane xpkg push` does.
func annotated(img v1.Image) (v1.Image, error) {
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	layers, err := img.Layers()
	if err != nil {
		return nil, err
	}
	marked := empty.Image
	for _, layer := range layers {
		digest, err := layer.Digest()
		if err != nil {
			return nil, err
		}
		addendum := mutate.Addendum{Layer: layer}
		if mark, ok := config.Config.Labels[layerAnnotation+":"+digest.String()]; ok {
			addendum.Annotations = map[string]string{layerAnnotation: mark}
		}
		if marked, err = mutate.Append(marked, addendum); err != nil {
			return nil, err
		}
	}
	return mutate.ConfigFile(marked, config)
}

// fileOf returns a file of an image, from the highest layer that has it.
func fileOf(img v1.Image, name string) ([]byte, error) {
	layers, err := img.Layers()
	if err != nil {
		return nil, err
	}
	for _, layer := range slices.Backward(layers) {
		content, err := layer.Uncompressed()
		if err != nil {
			return nil, err
		}
		data, err := entry(content, strings.TrimPrefix(name, "/"))
		if err := errors.Join(err, content.Close()); err != nil {
			return nil, fmt.Errorf("cannot read a layer: %w", err)
		}
		if data != nil {
			return data, nil
		}
	}
	return nil, fmt.Errorf("cannot find %s in its image", name)
}

func entry(layer io.Reader, name string) ([]byte, error) {
	for files := tar.NewReader(layer); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if header.Name == name {
			return io.ReadAll(files)
		}
	}
}
