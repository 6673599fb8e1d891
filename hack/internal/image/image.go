// SPDX-License-Identifier: Apache-2.0

// Package image builds container images without Docker. The same Spec always gives the same bytes.
package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// A Spec is all that an image consists of.
type Spec struct {
	// Platform as in "linux/amd64".
	Platform string
	// Base layers come below the one of Files, the lowest first. Empty is an image of that one layer.
	Base []v1.Layer
	// Files of the top layer, in any order. Parent folders are made as needed.
	Files []File
	// Entrypoint is the command with its fixed arguments.
	Entrypoint []string
	// User that runs it, as in "65532"; empty is root.
	User string
	// Env as in "PATH=/bin".
	Env []string
	// Labels of the image's configuration.
	Labels map[string]string
	// Created is the time in the image's configuration; 1970 without it.
	Created time.Time
}

// A File is one entry of the layer: a link if Link is set, the file at Source if that is set, a folder if Mode says so,
// else a file with Content.
type File struct {
	// Path in the image, absolute.
	Path string
	// Mode holds the permissions, and fs.ModeDir and fs.ModeSticky where they apply. Links ignore it.
	Mode fs.FileMode
	// Source is a file on this machine.
	Source string
	// Content of a file without Source.
	Content []byte
	// Link is the target of a symbolic link.
	Link string
}

// Tree returns every file below dir on this machine as a File below root in the image.
func Tree(dir, root string) ([]File, error) {
	var files []File
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		files = append(files, File{Path: path.Join(root, filepath.ToSlash(rel)), Mode: 0o644, Source: name})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot collect the files of %q: %w", dir, err)
	}
	return files, nil
}

// Build returns the image of a Spec: its base, and one layer on top of that.
func Build(ctx context.Context, spec Spec) (v1.Image, error) {
	platform, err := v1.ParsePlatform(spec.Platform)
	if err != nil {
		return nil, fmt.Errorf("cannot build an image: %w", err)
	}
	var layer bytes.Buffer
	if err := writeLayer(ctx, &layer, spec.Files); err != nil {
		return nil, err
	}
	content := layer.Bytes()
	l, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithCompressedCaching, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("cannot compress a layer: %w", err)
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, layer := range append(slices.Clone(spec.Base), l) {
		img, err = mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: "capstan"}})
		if err != nil {
			return nil, fmt.Errorf("cannot append a layer: %w", err)
		}
	}
	img, err = mutate.ConfigFile(img, config(img, spec, platform))
	if err != nil {
		return nil, fmt.Errorf("cannot configure an image: %w", err)
	}
	return img, nil
}

func config(img v1.Image, spec Spec, platform *v1.Platform) *v1.ConfigFile {
	cfg := &v1.ConfigFile{}
	if old, err := img.ConfigFile(); err == nil {
		cfg = old.DeepCopy()
	}
	cfg.OS, cfg.Architecture, cfg.Variant = platform.OS, platform.Architecture, platform.Variant
	cfg.Created = v1.Time{Time: time.Unix(0, 0).UTC()}
	if !spec.Created.IsZero() {
		cfg.Created.Time = spec.Created.UTC()
	}
	cfg.Config = v1.Config{
		Entrypoint: spec.Entrypoint,
		User:       spec.User,
		Env:        spec.Env,
		Labels:     maps.Clone(spec.Labels),
	}
	return cfg
}

// writeLayer writes the files sorted by path, owned by root, dated 1970.
func writeLayer(ctx context.Context, w io.Writer, files []File) error {
	sorted := slices.SortedFunc(slices.Values(withParents(files)), func(a, b File) int {
		return strings.Compare(a.Path, b.Path)
	})
	tw := tar.NewWriter(w)
	for _, f := range sorted {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("cannot build an image: %w", err)
		}
		if err := writeFile(tw, f); err != nil {
			return fmt.Errorf("cannot add %q to an image: %w", f.Path, err)
		}
	}
	if err := tw.Close(); err != nil {
		return fmt.Errorf("cannot finish a layer: %w", err)
	}
	return nil
}

func writeFile(tw *tar.Writer, f File) error {
	hdr := &tar.Header{
		Name:    strings.TrimPrefix(f.Path, "/"),
		Mode:    int64(f.Mode.Perm()),
		ModTime: time.Unix(0, 0).UTC(),
		Format:  tar.FormatUSTAR,
	}
	if f.Mode&fs.ModeSticky != 0 {
		hdr.Mode |= 0o1000
	}
	switch {
	case f.Link != "":
		hdr.Typeflag, hdr.Linkname, hdr.Mode = tar.TypeSymlink, f.Link, 0o777
		return tw.WriteHeader(hdr)
	case f.Mode.IsDir():
		hdr.Typeflag, hdr.Name = tar.TypeDir, hdr.Name+"/"
		return tw.WriteHeader(hdr)
	}
	content, size, err := open(f)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	hdr.Typeflag, hdr.Size = tar.TypeReg, size
	if err := tw.WriteHeader(hdr); err != nil {
		return err
	}
	_, err = io.Copy(tw, content)
	return err
}

func open(f File) (io.ReadCloser, int64, error) {
	if f.Source == "" {
		return io.NopCloser(bytes.NewReader(f.Content)), int64(len(f.Content)), nil
	}
	src, err := os.Open(f.Source)
	if err != nil {
		return nil, 0, err
	}
	info, err := src.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, src.Close())
	}
	return src, info.Size(), nil
}

// withParents adds the folders that are not listed.
func withParents(files []File) []File {
	all := make(map[string]File, len(files))
	for _, f := range files {
		for dir := path.Dir(f.Path); dir != "/" && dir != "."; dir = path.Dir(dir) {
			if _, ok := all[dir]; !ok {
				all[dir] = File{Path: dir, Mode: fs.ModeDir | 0o755}
			}
		}
	}
	for _, f := range files {
		all[f.Path] = f
	}
	return slices.Collect(maps.Values(all))
}
