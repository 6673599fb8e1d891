// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/capstan-dev/capstan/hack/internal/memberimage"
)

// The console, whose image no package names: its manifest does, with the digest in a release.
const (
	consoleName = "capstan-console"
	consoleFile = "package/console.yaml"
)

// The public home of Capstan's packages. crossplane.yaml, platform.yaml and mirror.yaml name it too, and a test compares.
const (
	publicRegistry = "ghcr.io"
	organisation   = "capstan-dev"
)

// An artifact is one thing that is built for a version and pushed to a registry.
type artifact struct {
	// Name of the artifact and of its repository.
	Name string
	// Kind of package: configuration, function or provider. Empty for a plain image.
	Kind string
	// Meta is the file that describes the package.
	Meta string
	// Contents are patterns of the files in the package; each matches at least one.
	Contents []string
	// Examples are patterns of files that travel with the package and are not installed.
	Examples []string
	// Program is the Go package of what runs. Empty when nothing does.
	Program string
	// Member puts the program on top of what the image of members with the artifact's name has. Other images hold the program and
	// nothing else.
	Member bool
}

// artifacts lists them in the order of a release and of an upgrade: the function names the images that come before it, and the APIs come
// last, because they ask for a function and a provider at least as new as they are.
func artifacts() []artifact {
	return []artifact{
		{Name: "companion", Program: "./images/companion"},
		{Name: consoleName, Program: "./console"},
		{Name: "demo-algorithm", Program: "./images/demo-algorithm"},
		{Name: "demo-pipeline", Program: "./images/demo-pipeline"},
		{Name: "demo-training", Program: "./images/demo-training"},
		{Name: "demo-flink", Program: "./images/demo-flink"},
		{Name: "postgres", Program: "./images/postgres/member", Member: true},
		{Name: "mysql", Program: "./images/mysql/member", Member: true},
		{Name: "demo-database", Program: "./images/demo-database"},
		{
			Name: "function-capstan", Kind: "function", Program: "./function",
			Meta:     "package/function/crossplane.yaml",
			Contents: []string{"package/function/input/*.yaml"},
		},
		{
			Name: "provider-capstan", Kind: "provider", Program: "./provider",
			Meta:     "package/provider/crossplane.yaml",
			Contents: []string{"package/provider/crds/*.yaml"},
		},
		{
			Name: "capstan", Kind: "configuration",
			Meta:     "crossplane.yaml",
			Contents: []string{"apis/activation.yaml", "apis/*/definition.yaml", "apis/*/composition.yaml"},
			Examples: []string{"examples/*/*/xr.yaml"},
		},
	}
}

// names reports whether an artifact has the digest of another one of the same release in it.
func (a artifact) names(other artifact) bool {
	return a.Kind == "function" && other.Kind == "" || a.Kind == "configuration" && other.Kind != ""
}

// repository in a registry.
func (a artifact) repository(registry string) string {
	return fmt.Sprintf("%s/%s/%s", registry, organisation, a.Name)
}

// reference of a version in a registry.
func (a artifact) reference(registry, version string) string {
	return a.repository(registry) + ":" + version
}

// program is where the image has what runs.
func (a artifact) program() string {
	if a.Member {
		return memberimage.Member
	}
	return "/" + path.Base(a.Program)
}

// installed is the name that Crossplane gives the package: its repository, with dashes.
func (a artifact) installed() string { return organisation + "-" + a.Name }

// file of a version for a platform, as in function-capstan-v0.1.0-linux-amd64.xpkg. A package without a program is the
// same everywhere.
func (a artifact) file(version, platform string) string {
	parts := []string{a.Name, version}
	if a.Program != "" {
		parts = append(parts, strings.ReplaceAll(platform, "/", "-"))
	}
	extension := ".xpkg"
	if a.Kind == "" {
		extension = ".tar"
	}
	return strings.Join(parts, "-") + extension
}

// built returns the files of a version, one for each platform.
func (a artifact) built(output, version string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(output, a.file(version, "*")))
	if err != nil {
		return nil, fmt.Errorf("cannot list what was built: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("cannot find %s %s in %s: build it first", a.Name, version, output)
	}
	return files, nil
}

// discard removes the files of a version, so that what is pushed later was all built from the same source.
func (a artifact) discard(output, version string) error {
	files, err := filepath.Glob(filepath.Join(output, a.file(version, "*")))
	if err != nil {
		return fmt.Errorf("cannot list what was built: %w", err)
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			return fmt.Errorf("cannot remove an earlier build: %w", err)
		}
	}
	return nil
}
