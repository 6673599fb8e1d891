// SPDX-License-Identifier: Apache-2.0

package memberimage

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Rootfs unpacks the layers for a platform below the cache, unless they are there, and returns the folder. Tests run what is in it
// without a container; the program of the image is not in it.
func (b *Builder) Rootfs(ctx context.Context, image Image, platform string) (string, error) {
	layers, err := b.Layers(ctx, image, platform)
	if err != nil {
		return "", err
	}
	names := make([]string, len(layers))
	for i, l := range layers {
		diff, err := l.DiffID()
		if err != nil {
			return "", err
		}
		names[i] = diff.Hex[:12]
	}
	parent := filepath.Join(b.Cache, image.Name)
	dir := filepath.Join(parent, strings.Join(names, "-"))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("cannot create a root file system: %w", err)
	}
	// It appears at once or not at all.
	tmp, err := os.MkdirTemp(parent, ".rootfs-")
	if err != nil {
		return "", fmt.Errorf("cannot create a root file system: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	root := filepath.Join(tmp, "root")
	if err := b.Step("unpack the root file system of "+image.Name, nil, func() error { return Unpack(layers, root) }); err != nil {
		return "", err
	}
	if err := os.Rename(root, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("cannot keep a root file system: %w", err)
	}
	return dir, nil
}

// Unpack writes layers into a folder. Owners are kept if this runs as root.
func Unpack(layers []v1.Layer, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot create a root file system: %w", err)
	}
	// Nothing is written outside, wherever a link points.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("cannot create a root file system: %w", err)
	}
	defer func() { _ = root.Close() }()
	for _, l := range layers {
		if err := unpackLayer(root, l); err != nil {
			return fmt.Errorf("cannot unpack a layer: %w", err)
		}
	}
	return nil
}

func unpackLayer(root *os.Root, l v1.Layer) error {
	content, err := l.Uncompressed()
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	for r := tar.NewReader(content); ; {
		hdr, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := unpackEntry(root, hdr, r); err != nil {
			return fmt.Errorf("cannot write %s: %w", hdr.Name, err)
		}
	}
}

func unpackEntry(root *os.Root, hdr *tar.Header, content io.Reader) error {
	name := strings.TrimSuffix(hdr.Name, "/")
	switch hdr.Typeflag {
	case tar.TypeSymlink:
		return root.Symlink(hdr.Linkname, name)
	case tar.TypeLink:
		return root.Link(hdr.Linkname, name)
	case tar.TypeDir:
		if err := root.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	default:
		f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	if os.Geteuid() == 0 {
		if err := root.Lchown(name, hdr.Uid, hdr.Gid); err != nil {
			return err
		}
	}
	// After the owner, whose change takes permissions away; and not subject to the umask.
	return root.Chmod(name, hdr.FileInfo().Mode())
}
