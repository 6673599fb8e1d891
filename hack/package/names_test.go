// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/capstan-dev/capstan/hack/internal/build"
)

// These tests hold together what several files say in their own ways: where packages live, what Crossplane calls them once
// they are installed, and which kinds there are.

func TestDependencies(t *testing.T) {
	want := []string{find(t, "function-capstan").repository(publicRegistry), find(t, "provider-capstan").repository(publicRegistry)}
	dependencies := source(t, "crossplane.yaml")[0].Spec.DependsOn
	got := make([]string, 0, len(dependencies))
	for _, d := range dependencies {
		got = append(got, d.Package)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("dependencies of the Configuration: -want, +got:\n%s", diff)
	}
}

func TestSetDependencies(t *testing.T) {
	function := find(t, "function-capstan").repository(publicRegistry)
	raised, err := setDependencies(read(t, "crossplane.yaml"), "v0.3.0-rc.1", map[string]string{function: "sha256:ab"})
	if err != nil {
		t.Fatal(err)
	}
	dependencies := documents(t, raised)[0].Spec.DependsOn
	if len(dependencies) != 2 {
		t.Fatalf("want both dependencies, got %v", dependencies)
	}
	for _, d := range dependencies {
		want := ">=v0.3.0-rc.1"
		if d.Package == function {
			want = "sha256:ab"
		}
		if d.Version != want {
			t.Errorf("a package needs a %s at least as new as itself, or the one that is pinned: want %q, got %q", d.Package, want, d.Version)
		}
	}
}

func TestFunctionRef(t *testing.T) {
	compositions, err := filepath.Glob(filepath.Join(root(t), "apis/*/composition.yaml"))
	if err != nil || len(compositions) == 0 {
		t.Fatalf("cannot find compositions: %v", err)
	}
	for _, file := range compositions {
		rel, err := filepath.Rel(root(t), file)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range source(t, rel)[0].Spec.Pipeline {
			if want := find(t, "function-capstan").installed(); step.FunctionRef.Name != want {
				t.Errorf("%s: Crossplane installs the function as %q, but a step calls %q", rel, want, step.FunctionRef.Name)
			}
		}
	}
}

func TestActivation(t *testing.T) {
	crds, err := filepath.Glob(filepath.Join(root(t), "package/provider/crds/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := make([]string, 0, len(crds))
	for _, file := range crds {
		// controller-gen names files group_plural.yaml.
		group, plural, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".yaml"), "_")
		if group == "capstan.dev" {
			continue // what configures the provider is there from the start
		}
		want = append(want, plural+"."+group)
	}
	got := source(t, "apis/activation.yaml")[0].Spec.Activate
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds of the provider and kinds that are activated: -want, +got:\n%s", diff)
	}
}

func TestImageConfigs(t *testing.T) {
	runtime := []string{"function-capstan", "provider-capstan"}
	cases := map[string]struct {
		reason   string
		file     string
		registry string
		rewrites bool
	}{
		"Public": {
			reason: "The public images get their runtime configuration, and no image whose name is longer.",
			file:   "package/platform.yaml", registry: publicRegistry,
		},
		"Mirror": {
			reason: "So do rewritten ones, which Crossplane compares under their rewritten names.",
			file:   "package/mirror.yaml", registry: exampleRegistry, rewrites: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want, got := make([]string, 0, 2*len(runtime)), make([]string, 0, 2*len(runtime))
			for _, r := range runtime {
				for _, end := range []string{":", "@"} {
					want = append(want, tc.registry+"/"+organisation+"/"+r+end)
				}
			}
			rewrites := false
			for _, o := range source(t, tc.file) {
				if o.Kind != "ImageConfig" {
					continue
				}
				if to := o.Spec.RewriteImage.Prefix; to != "" {
					rewrites = true
					if diff := cmp.Diff([]string{publicRegistry + "/" + organisation + "/", tc.registry + "/" + organisation + "/"},
						[]string{o.Spec.MatchImages[0].Prefix, to}); diff != "" {
						t.Errorf("%s\nrewrite: -want, +got:\n%s", tc.reason, diff)
					}
					continue
				}
				for _, m := range o.Spec.MatchImages {
					got = append(got, m.Prefix)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n%s: -want, +got:\n%s", tc.reason, tc.file, diff)
			}
			if rewrites != tc.rewrites {
				t.Errorf("%s\n%s: want rewrites %t, got %t", tc.reason, tc.file, tc.rewrites, rewrites)
			}
		})
	}
}

// TestImagesOfAMirror expects that pods pull from the mirror what they pull by themselves. The function adds its version.
func TestImagesOfAMirror(t *testing.T) {
	var want []string
	for _, name := range []string{"companion", "postgres", "mysql"} {
		want = append(want, find(t, name).repository(exampleRegistry))
	}
	var got []string
	for _, o := range source(t, "package/mirror.yaml") {
		if o.Kind == "EnvironmentConfig" && o.Metadata.Name == "capstan" {
			got = append(got, o.Data.Algorithm.CompanionImage, o.Data.Database.Image, o.Data.Database.MySQLImage)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the images of a mirror: -want, +got:\n%s", diff)
	}
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := build.Repository()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root(t), file))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func source(t *testing.T, file string) []object {
	t.Helper()
	return documents(t, read(t, file))
}

// TestConsole expects the image of the console in its manifest, and no rights.
func TestConsole(t *testing.T) {
	manifest := read(t, consoleFile)
	c := releaseCmd{Registry: publicRegistry}
	pinned, err := c.pinConsole(manifest, []releasedImage{{artifact: find(t, consoleName), digest: v1.Hash{Algorithm: "sha256", Hex: "5e5e"}}})
	if err != nil {
		t.Fatal(err)
	}
	if want := "image: ghcr.io/capstan-dev/capstan-console@sha256:5e5e\n"; strings.Count(string(pinned), want) != 1 || strings.Contains(string(pinned), "capstan-console:v") {
		t.Errorf("want %q in\n%s", want, pinned)
	}
	if _, err := c.pinConsole(manifest, nil); err == nil {
		t.Error("a release without the image has to fail")
	}
	if _, err := c.pinConsole([]byte("no image"), []releasedImage{{artifact: find(t, consoleName)}}); err == nil {
		t.Error("a manifest without the image has to fail")
	}
	var kinds []string
	for _, o := range documents(t, manifest) {
		kinds = append(kinds, o.Kind)
	}
	if diff := cmp.Diff([]string{"Namespace", "ServiceAccount", "Deployment", "Service", "NetworkPolicy"}, kinds); diff != "" {
		t.Errorf("the console has no rights of its own: -want, +got:\n%s", diff)
	}
	if n := strings.Count(string(manifest), "automountServiceAccountToken: false"); n != 2 {
		t.Errorf("the console has no token of its own: want it said of the account and of the pod, got %d", n)
	}
}
