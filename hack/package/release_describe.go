// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/capstan-dev/capstan/hack/internal/attest"
	"github.com/capstan-dev/capstan/hack/internal/checkout"
	"github.com/capstan-dev/capstan/hack/internal/debian"
	"github.com/capstan-dev/capstan/hack/internal/memberimage"
)

// homepage is the public home of the source.
const homepage = "https://github.com/capstan-dev/capstan"

// describe adds the SBOM of each image that has a program, and the provenance of all.
func (c *releaseCmd) describe(files map[string][]byte, p *project, images []releasedImage, state checkout.State) error {
	modules, err := digestOf(p, "go.sum")
	if err != nil {
		return err
	}
	for i, img := range images {
		subject := attest.Subject{
			Name: img.Name, Repository: fmt.Sprintf("%s/%s/%s", c.Registry, organisation, img.Name), Version: p.version,
			Digest: img.digest, Time: state.Time,
		}
		materials := []attest.Material{
			commit(state),
			{Name: "go", URI: "https://go.dev/dl/" + toolchain},
			modules,
		}
		var packages []debian.Package
		if img.Member {
			members, err := memberimage.Named(img.Name)
			if err != nil {
				return err
			}
			lock, err := digestOf(p, members.Lock())
			if err != nil {
				return err
			}
			materials = append(materials, lock)
			if packages, err = c.packages(p, members.Lock()); err != nil {
				return err
			}
		}
		for _, other := range images[:i] {
			if img.names(other.artifact) {
				materials = append(materials, attest.Material{Name: other.Name, URI: "pkg:oci/" + other.Name, Digests: map[string]string{"sha256": other.digest.Hex}})
			}
		}
		statement, err := attest.Provenance(subject, attest.Build{
			Type: homepage + "/blob/main/docs/releasing.md", Builder: builder(),
			Parameters: map[string]any{"version": p.version, "registry": c.Registry, "platforms": anys(c.Platform)},
			Materials:  materials,
		})
		if err != nil {
			return err
		}
		files["provenance-"+img.Name+".intoto.json"] = statement
		if len(img.programs) == 0 {
			continue
		}
		if files["sbom-"+img.Name+".cdx.json"], err = attest.SBOM(subject, img.programs, packages); err != nil {
			return err
		}
	}
	return nil
}

// packages returns what a lock names for the platforms that are built.
func (c *releaseCmd) packages(p *project, file string) ([]debian.Package, error) {
	data, err := os.ReadFile(filepath.Join(p.root, file))
	if err != nil {
		return nil, fmt.Errorf("cannot read the lock of packages: %w", err)
	}
	lock, err := debian.ParseLock(data)
	if err != nil {
		return nil, err
	}
	var found []debian.Package
	for _, platform := range c.Platform {
		found = append(found, lock.For(filepath.Base(platform))...)
	}
	return found, nil
}

func commit(state checkout.State) attest.Material {
	m := attest.Material{Name: "source", URI: "git+" + homepage, Digests: map[string]string{"gitCommit": state.Commit}}
	if len(state.Dirty) > 0 {
		m.Annotations = map[string]any{"uncommitted changes": len(state.Dirty)}
	}
	return m
}

func digestOf(p *project, file string) (attest.Material, error) {
	data, err := os.ReadFile(filepath.Join(p.root, file))
	if err != nil {
		return attest.Material{}, fmt.Errorf("cannot read %s: %w", file, err)
	}
	sum := sha256.Sum256(data)
	return attest.Material{Name: file, Digests: map[string]string{"sha256": hex.EncodeToString(sum[:])}}, nil
}

// builder is the address of the workflow that runs this, or says that a person does.
func builder() string {
	if os.Getenv("GITHUB_ACTIONS") == "true" {
		return os.Getenv("GITHUB_SERVER_URL") + "/" + os.Getenv("GITHUB_WORKFLOW_REF")
	}
	return homepage + "/blob/main/docs/releasing.md#by-hand"
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func anys(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}
