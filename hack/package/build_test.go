// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/hack/internal/progress"
)

const (
	testVersion  = "v0.3.0"
	testPlatform = "linux/amd64"
	testDigest   = "sha256:5e5e0f1d5e5e0f1d5e5e0f1d5e5e0f1d5e5e0f1d5e5e0f1d5e5e0f1d5e5e0f1d"
)

// TestBuild builds everything twice, the second time from a copy of the source in another folder, and looks into what came
// out of it. Images of members are left to tests of their own: most of each has to be downloaded.
func TestBuild(t *testing.T) {
	first := newProject(t)
	second := newProject(t)
	second.root = copySource(t, first.root)

	build := buildCmd{Platform: []string{testPlatform}}
	var built []artifact
	for _, a := range artifacts() {
		if !a.Member {
			built, build.Only = append(built, a), append(build.Only, a.Name)
		}
	}
	for _, p := range []*project{first, second} {
		p.created, p.env = time.Unix(1767323045, 0), reproducible()
		p.pins = map[string]string{find(t, "postgres").repository(publicRegistry): testDigest}
		if err := build.Run(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("Reproducible", func(t *testing.T) {
		if diff := cmp.Diff(digests(t, first.output), digests(t, second.output)); diff != "" {
			t.Errorf("two builds of the same source: -first, +second:\n%s", diff)
		}
		for _, a := range built {
			var both []string
			for _, p := range []*project{first, second} {
				files, err := a.built(p.output, p.version)
				if err != nil {
					t.Fatal(err)
				}
				img, err := assemble(a, files)
				if err != nil {
					t.Fatal(err)
				}
				both = append(both, img.digest.String())
			}
			if both[0] != both[1] {
				t.Errorf("two releases of the same source: %s is %s and %s", a.Name, both[0], both[1])
			}
		}
	})

	t.Run("Digests", func(t *testing.T) {
		for _, a := range built {
			if a.Program == "" {
				continue
			}
			program, err := fileOf(load(t, first, a), a.program())
			if err != nil {
				t.Fatal(err)
			}
			if got, want := strings.Contains(string(program), "ghcr.io/capstan-dev/postgres@"+testDigest), a.Kind == "function"; got != want {
				t.Errorf("only the function names the digests of images: want %t of %s, got %t", want, a.Name, got)
			}
		}
	})

	contents := map[string]struct {
		reason string
		want   []string
	}{
		"function-capstan": {
			reason: "A Function may only carry the schema of its input.",
			want:   []string{"Function function-capstan", "CustomResourceDefinition settings.capstan.dev"},
		},
		"provider-capstan": {
			reason: "A Provider may only carry its kinds.",
			want: []string{
				"Provider provider-capstan",
				"CustomResourceDefinition accesses.access.capstan.dev",
				"CustomResourceDefinition analyses.observe.capstan.dev",
				"CustomResourceDefinition autoscalers.observe.capstan.dev",
				"CustomResourceDefinition buckets.storage.capstan.dev",
				"CustomResourceDefinition clusterproviderconfigs.capstan.dev",
				"CustomResourceDefinition credentials.credentials.capstan.dev",
				"CustomResourceDefinition flinkjobs.observe.capstan.dev",
				"CustomResourceDefinition hooks.observe.capstan.dev",
				"CustomResourceDefinition jobhistories.observe.capstan.dev",
				"CustomResourceDefinition lineages.observe.capstan.dev",
				"CustomResourceDefinition modelaliases.registry.capstan.dev",
				"CustomResourceDefinition modelversions.registry.capstan.dev",
				"CustomResourceDefinition providerconfigs.capstan.dev",
				"CustomResourceDefinition providerconfigusages.capstan.dev",
				"CustomResourceDefinition receivers.events.capstan.dev",
				"CustomResourceDefinition registeredmodels.registry.capstan.dev",
				"CustomResourceDefinition runs.observe.capstan.dev",
				"CustomResourceDefinition signals.events.capstan.dev",
				"CustomResourceDefinition topologies.observe.capstan.dev",
				"CustomResourceDefinition volumeclaims.storage.capstan.dev",
			},
		},
		"capstan": {
			reason: "The Configuration carries the APIs and what makes them work, and nothing of Go's folders beside them.",
			want: []string{
				"Configuration capstan",
				"Composition algorithm",
				"Composition database",
				"Composition experiment",
				"Composition pipeline",
				"Composition preview",
				"Composition training",
				"CompositeResourceDefinition algorithms.capstan.dev",
				"CompositeResourceDefinition databases.capstan.dev",
				"CompositeResourceDefinition experiments.capstan.dev",
				"CompositeResourceDefinition pipelines.capstan.dev",
				"CompositeResourceDefinition previews.capstan.dev",
				"CompositeResourceDefinition trainings.capstan.dev",
				"ManagedResourceActivationPolicy capstan",
			},
		},
	}
	for _, a := range built {
		if a.Kind == "" {
			continue
		}
		tc := contents[a.Name]
		t.Run(a.Name, func(t *testing.T) {
			objects := documents(t, unpack(t, load(t, first, a))["package.yaml"])
			got := make([]string, 0, len(objects))
			for _, o := range objects {
				got = append(got, o.Kind+" "+o.Metadata.Name)
			}
			slices.Sort(got)
			slices.Sort(tc.want)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nobjects in the package: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}

	t.Run("Runtime", func(t *testing.T) {
		for _, a := range built {
			if a.Program == "" {
				continue
			}
			img := load(t, first, a)
			config, err := img.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			program := "/" + filepath.Base(a.Program)
			got := []string{config.OS, config.Architecture, config.Config.User, strings.Join(config.Config.Entrypoint, " ")}
			if diff := cmp.Diff([]string{"linux", "amd64", "65532:65532", program}, got); diff != "" {
				t.Errorf("%s runs as nobody, without a shell: -want, +got:\n%s", a.Name, diff)
			}
			if _, ok := unpack(t, img)[strings.TrimPrefix(program, "/")]; !ok {
				t.Errorf("%s: cannot find %s in its image", a.Name, program)
			}
		}
	})

	t.Run("Small", func(t *testing.T) {
		// Nodes pull the companion before the first replica with a model starts.
		const limit = 25 << 20
		layers, err := load(t, first, find(t, "companion")).Layers()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range layers {
			content, err := l.Uncompressed()
			if err != nil {
				t.Fatal(err)
			}
			size, err := io.Copy(io.Discard, content)
			if err != nil || size > limit {
				t.Errorf("want an image of at most %d bytes, got %d, %v", limit, size, err)
			}
		}
	})

	t.Run("Anywhere", func(t *testing.T) {
		config, err := load(t, first, find(t, "capstan")).ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Architecture != "" {
			t.Errorf("a Configuration runs nothing and fits every platform, but has architecture %q", config.Architecture)
		}
	})
}

func TestKeep(t *testing.T) {
	p := newProject(t)
	file := filepath.Join(p.output, find(t, "capstan").file(p.version, ""))
	cases := []struct {
		reason string
		keep   bool
		before string
		want   bool
	}{
		{reason: "What is not there is built.", keep: true, want: true},
		{reason: "What is there is kept.", keep: true, before: "mine", want: false},
		{reason: "Unless nobody asks for that.", before: "mine", want: true},
	}
	for _, tc := range cases {
		if tc.before != "" {
			if err := os.WriteFile(file, []byte(tc.before), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		build := buildCmd{Platform: []string{testPlatform}, Only: []string{"capstan"}, Keep: tc.keep}
		if err := build.Run(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(data) != tc.before; got != tc.want {
			t.Errorf("%s Got built: %t", tc.reason, got)
		}
	}
	if left, err := filepath.Glob(filepath.Join(p.output, "*.partial")); err != nil || len(left) > 0 {
		t.Errorf("half a package was left: %v, %v", left, err)
	}
}

func TestSelection(t *testing.T) {
	if _, err := selection([]string{"capstan", "function"}); err == nil {
		t.Error("a misspelt name must not be ignored")
	}
	got, err := selection([]string{"capstan"})
	if err != nil || len(got) != 1 || got[0].Name != "capstan" {
		t.Errorf("selection(capstan): got %v, %v", got, err)
	}
}

func newProject(t *testing.T) *project {
	t.Helper()
	p, err := open(t.Context(), testVersion, t.TempDir(), progress.New(t.Output()))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func find(t *testing.T, name string) artifact {
	t.Helper()
	found, err := selection([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	return found[0]
}

// copySource copies what packages are built from.
func copySource(t *testing.T, root string) string {
	t.Helper()
	dir := t.TempDir()
	for _, folder := range []string{"apis", "console", "examples", "function", "images", "input", "internal", "package", "provider"} {
		if err := os.CopyFS(filepath.Join(dir, folder), os.DirFS(filepath.Join(root, folder))); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"go.mod", "go.sum", "crossplane.yaml", "LICENSE"} {
		data, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// digests of all files in a folder by their names.
func digests(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		sums[e.Name()] = hex.EncodeToString(sum[:])
	}
	return sums
}

func load(t *testing.T, p *project, a artifact) v1.Image {
	t.Helper()
	files, err := a.built(p.output, p.version)
	if err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(files[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// unpack returns the files of all layers.
func unpack(t *testing.T, img v1.Image) map[string][]byte {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, l := range layers {
		content, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		for r := tar.NewReader(content); ; {
			header, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if files[header.Name], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	return files
}

// An object as far as these tests look at it.
type object struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Data struct {
		Algorithm struct {
			CompanionImage string `json:"companionImage"`
		} `json:"algorithm"`
		Database struct {
			Image      string `json:"image"`
			MySQLImage string `json:"mysqlImage"`
		} `json:"database"`
	} `json:"data"`
	Spec struct {
		Activate  []string `json:"activate"`
		DependsOn []struct {
			Package string `json:"package"`
			Version string `json:"version"`
		} `json:"dependsOn"`
		MatchImages []struct {
			Prefix string `json:"prefix"`
		} `json:"matchImages"`
		Pipeline []struct {
			FunctionRef struct {
				Name string `json:"name"`
			} `json:"functionRef"`
		} `json:"pipeline"`
		RewriteImage struct {
			Prefix string `json:"prefix"`
		} `json:"rewriteImage"`
	} `json:"spec"`
}

func documents(t *testing.T, stream []byte) []object {
	t.Helper()
	var objects []object
	for doc := range strings.SplitSeq("\n"+string(stream), "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatalf("cannot parse %q: %v", doc, err)
		}
		if o.Kind != "" {
			objects = append(objects, o)
		}
	}
	return objects
}
