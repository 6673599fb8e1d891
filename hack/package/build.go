// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/capstan-dev/capstan/hack/internal/image"
	"github.com/capstan-dev/capstan/hack/internal/licenses"
	"github.com/capstan-dev/capstan/hack/internal/memberimage"
)

// imageUser is the user of our images. A number, because Kubernetes cannot know that a name is not root.
const imageUser = "65532:65532"

type buildCmd struct {
	Platform []string `default:"linux/amd64,linux/arm64"                                                                                                          help:"Platforms to build for."`
	Only     []string `help:"Names of what to build. Default: everything."                                                                                        placeholder:"NAME"`
	Keep     bool     `help:"Keep what the output folder has of this version. Only a version that names its content, as hack/version prints it, makes that safe."`
}

// Run builds into the project's output folder. The same source, version and Go toolchain give the same bytes.
func (c *buildCmd) Run(ctx context.Context, p *project) error {
	if err := os.MkdirAll(p.output, 0o755); err != nil {
		return fmt.Errorf("cannot create a folder for packages: %w", err)
	}
	selected, err := selection(c.Only)
	if err != nil {
		return err
	}
	for _, a := range selected {
		if !c.Keep {
			if err := a.discard(p.output, p.version); err != nil {
				return err
			}
		}
		platforms := c.Platform
		if a.Program == "" {
			platforms = []string{""}
		}
		for _, platform := range platforms {
			file := filepath.Join(p.output, a.file(p.version, platform))
			if _, err := os.Stat(file); c.Keep && err == nil {
				continue
			}
			err := p.Step("build "+filepath.Base(file), nil, func() error { return p.complete(ctx, a, platform, file) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// selection returns the named artifacts, all without a name.
func selection(names []string) ([]artifact, error) {
	if len(names) == 0 {
		return artifacts(), nil
	}
	byName := map[string]artifact{}
	for _, a := range artifacts() {
		byName[a.Name] = a
	}
	var selected []artifact
	for _, n := range names {
		a, ok := byName[n]
		if !ok {
			return nil, fmt.Errorf("cannot find %q among what there is to build", n)
		}
		selected = append(selected, a)
	}
	return selected, nil
}

// complete builds a file that is there when it is whole, and only then.
func (p *project) complete(ctx context.Context, a artifact, platform, file string) error {
	partial := file + ".partial"
	if err := p.build(ctx, a, platform, partial); err != nil {
		return err
	}
	if err := os.Rename(partial, file); err != nil {
		return fmt.Errorf("cannot keep what was built of %s: %w", a.Name, err)
	}
	return nil
}

// build writes one artifact for one platform to a file.
func (p *project) build(ctx context.Context, a artifact, platform, file string) error {
	dir, err := os.MkdirTemp("", "capstan-package-")
	if err != nil {
		return fmt.Errorf("cannot stage %s: %w", a.Name, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	if a.Kind == "" {
		return p.buildImage(ctx, a, platform, dir, file)
	}
	if err := p.stage(a, dir); err != nil {
		return err
	}
	args := []string{
		"xpkg", "build", "--package-file=" + file,
		"--package-root=" + filepath.Join(dir, stagedPackage),
		"--examples-root=" + filepath.Join(dir, stagedExamples),
	}
	if a.Program != "" {
		runtime := filepath.Join(dir, "runtime.tar")
		if err := p.buildImage(ctx, a, platform, dir, runtime); err != nil {
			return err
		}
		args = append(args, "--embed-runtime-image-tarball="+runtime)
	}
	return run(exec.CommandContext(ctx, p.crossplane, args...))
}

// buildImage compiles an artifact's program and writes an image that holds it, and nothing else unless the artifact says so.
func (p *project) buildImage(ctx context.Context, a artifact, platform, dir, file string) error {
	binary := filepath.Join(dir, "program")
	if err := p.compile(ctx, a, platform, binary); err != nil {
		return err
	}
	spec := image.Spec{
		Platform: platform,
		User:     imageUser,
		Created:  p.created,
		Labels: map[string]string{
			"org.opencontainers.image.title":    a.Name,
			"org.opencontainers.image.version":  p.version,
			"org.opencontainers.image.source":   "https://github.com/capstan-dev/capstan",
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	program := a.program()
	if a.Member {
		members, err := memberimage.Named(a.Name)
		if err != nil {
			return err
		}
		b, err := memberimage.New(ctx, p.root, p.Printer)
		if err != nil {
			return err
		}
		if spec.Base, err = b.Layers(ctx, members, platform); err != nil {
			return fmt.Errorf("cannot build the base of %s: %w", a.Name, err)
		}
		spec.User, spec.Env = memberimage.User, members.Env
		// With what is below the program, other licences apply; each is in the image.
		delete(spec.Labels, "org.opencontainers.image.licenses")
	}
	spec.Files = []image.File{{Path: program, Mode: 0o755, Source: binary}}
	terms, err := p.licences(ctx, a, binary)
	if err != nil {
		return err
	}
	spec.Files = append(spec.Files, terms...)
	spec.Entrypoint = []string{program}
	img, err := image.Build(ctx, spec)
	if err != nil {
		return fmt.Errorf("cannot build the image of %s: %w", a.Name, err)
	}
	tag, err := name.NewTag(a.reference(publicRegistry, p.version))
	if err != nil {
		return fmt.Errorf("cannot name the image of %s: %w", a.Name, err)
	}
	if err := tarball.WriteToFile(file, tag, img); err != nil {
		return fmt.Errorf("cannot write the image of %s: %w", a.Name, err)
	}
	return nil
}

// licences of Capstan and of the modules in a program. A program with a module under a licence that is not allowed is not built.
func (p *project) licences(ctx context.Context, a artifact, binary string) ([]image.File, error) {
	modules, err := licenses.Of(ctx, p.root, binary)
	if err != nil {
		return nil, err
	}
	if err := licenses.Check(modules); err != nil {
		return nil, fmt.Errorf("cannot pass on what is in %s: %w", a.Name, err)
	}
	return []image.File{
		{Path: "/licenses/capstan", Mode: 0o644, Source: filepath.Join(p.root, "LICENSE")},
		{Path: "/licenses/modules", Mode: 0o644, Content: licenses.Notice(modules)},
	}, nil
}

// compile builds a static, stripped program without a trace of where or from which checkout it was built. Its debugging information would
// be stripped; without it, programs share the compiler's cache with tests and with the cluster's programs.
func (p *project) compile(ctx context.Context, a artifact, platform, file string) error {
	system, architecture, ok := strings.Cut(platform, "/")
	if !ok {
		return fmt.Errorf("cannot build for %q: a platform looks like linux/amd64", platform)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false",
		"-ldflags="+p.linked(a), "-o", file, a.Program)
	cmd.Dir = p.root
	cmd.Env = append(append(os.Environ(), p.env...), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+architecture)
	return run(cmd)
}

// linked is what the linker writes into a program: its version and, in the function, the digests of the images that pods run.
func (p *project) linked(a artifact) string {
	flags := "-s -w -X main.version=" + p.version
	var images []string
	for _, other := range artifacts() {
		if repository := other.repository(publicRegistry); a.Program != "" && a.names(other) && p.pins[repository] != "" {
			images = append(images, repository+"@"+p.pins[repository])
		}
	}
	if len(images) == 0 {
		return flags
	}
	return flags + " -X 'main.digests=" + strings.Join(images, " ") + "'"
}

// run runs a command whose output is only of interest when it fails.
func run(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot run %q: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}
