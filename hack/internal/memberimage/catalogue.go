// SPDX-License-Identifier: Apache-2.0

package memberimage

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/hack/internal/debian"
)

// catalogue is the content of the file that lists what an image has; apis/members/catalogue has the types that read it.
type catalogue struct {
	// Lock is the sha256 of packages.lock that the rest was read from.
	Lock string `json:"lock"`
	// Tools maps programs beside the server to their versions.
	Tools map[string]string `json:"tools"`
	// Majors are sorted, oldest first.
	Majors []major `json:"majors"`
}

type major struct {
	Major string `json:"major"`
	// Version as the server itself shows it, as in 17.12.
	Version string `json:"version"`
	// Extensions maps names for CREATE EXTENSION to their default versions.
	Extensions map[string]string `json:"extensions,omitempty"`
}

func (c catalogue) format(image Image) ([]byte, error) {
	data, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the catalogue: %w", err)
	}
	return fmt.Appendf(nil, "# Written by \"go -C hack run ./member-image lock %[1]s\". What the image %[1]s has.\n%[2]s", image.Name, data), nil
}

// catalogue reads what the packages of the server have, and makes sure that every architecture has the same.
func (b *Builder) catalogue(ctx context.Context, image Image, lock debian.Lock) (catalogue, error) {
	var wanted []debian.Package
	for _, p := range lock.Packages {
		if image.group(p) != base {
			wanted = append(wanted, p)
		}
	}
	store := b.store()
	var count atomic.Int64
	far := func() string { return fmt.Sprintf("%d of %d packages", count.Load(), len(wanted)) }
	fetch := func() error { return store.Fetch(ctx, lock, wanted, &count) }
	if err := b.Step("download packages of "+image.Server, far, fetch); err != nil {
		return catalogue{}, err
	}
	architectures := image.request.Architectures
	all := make([]catalogue, len(architectures))
	for i, architecture := range architectures {
		c, err := image.describe(store, lock.For(architecture))
		if err != nil {
			return catalogue{}, err
		}
		all[i] = c
		if diff := cmp.Diff(all[0], c); diff != "" {
			return catalogue{}, fmt.Errorf("cannot lock packages while architectures differ, -%s, +%s: try again in a day\n%s",
				architectures[0], architecture, diff)
		}
	}
	return all[0], nil
}

func (i Image) describe(store *debian.Store, packages []debian.Package) (catalogue, error) {
	c := catalogue{Tools: map[string]string{}}
	for _, p := range packages {
		if tool, ok := i.tools[p.Name]; ok {
			c.Tools[tool] = upstream(p.Version)
		}
	}
	for _, name := range i.Versions {
		m := major{Major: name, Extensions: map[string]string{}}
		for _, p := range packages {
			if i.group(p) != name {
				continue
			}
			if p.Name == i.server(name) {
				m.Version = upstream(p.Version)
			}
			if i.extension == nil {
				continue
			}
			if err := debian.Walk(store.Path(p), m.add(i.extension)); err != nil {
				return catalogue{}, fmt.Errorf("cannot read the extensions of %s: %w", p.Name, err)
			}
		}
		if m.Version == "" || (i.extension != nil && len(m.Extensions) == 0) {
			return catalogue{}, fmt.Errorf("cannot find %s %s among the packages", i.Server, name)
		}
		c.Majors = append(c.Majors, m)
	}
	return c, nil
}

// upstream is a version of Debian without epoch and revision.
func upstream(version string) string {
	if _, rest, ok := strings.Cut(version, ":"); ok {
		version = rest
	}
	version, _, _ = strings.Cut(version, "-")
	return version
}

// add returns a function that adds the extension that a file describes.
func (m major) add(extension func(*tar.Header, io.Reader) (name, version string, err error)) func(*tar.Header, io.Reader) error {
	return func(hdr *tar.Header, content io.Reader) error {
		name, version, err := extension(hdr, content)
		if name != "" {
			m.Extensions[name] = version
		}
		return err
	}
}
