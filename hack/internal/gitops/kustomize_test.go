// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// kustomize builds a folder as `kubectl apply -k` does, with its default limits. It refuses an object that is there twice.
func kustomize(t *testing.T, folder string) []map[string]any {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatalf("cannot build %s: %v", folder, err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return documents(t, text)
}

// names of objects, sorted.
func names(objects []map[string]any) []string {
	all := make([]string, 0, len(objects))
	for _, o := range objects {
		all = append(all, text(o, "kind")+" "+text(o, "metadata", "name"))
	}
	slices.Sort(all)
	return all
}

var packages = []string{"Configuration capstan-dev-capstan", "Function capstan-dev-function-capstan", "Provider capstan-dev-provider-capstan"}

// TestKustomize builds the base and every overlay: they have platform.yaml and roles.yaml as a whole, the packages, what the overlay adds,
// and nothing else of the folder package, such as CRDs.
func TestKustomize(t *testing.T) {
	platform := names(documents(t, read(t, "package/platform.yaml")))
	roles := names(documents(t, read(t, "package/roles.yaml")))
	const settings = "EnvironmentConfig capstan"
	mirror := []string{"ImageConfig capstan-mirror", "ImageConfig function-capstan-mirror", "ImageConfig provider-capstan-mirror", settings}
	for folder, adds := range map[string][]string{
		"package":                nil,
		"install/settings":       {settings},
		"install/mirror":         mirror,
		"install/argocd/capstan": {settings, "ClusterProviderConfig prometheus"},
		"install/flux/capstan":   {settings},
	} {
		t.Run(folder, func(t *testing.T) {
			want := slices.Sorted(slices.Values(slices.Concat(platform, roles, packages, adds)))
			if diff := cmp.Diff(want, names(kustomize(t, filepath.Join(root, folder)))); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

// TestKustomizeRelease builds install/release from a server that has the files of a release.
func TestKustomizeRelease(t *testing.T) {
	const release = "https://github.com/capstan-dev/capstan/releases/download/v0.1.0"
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		if r.URL.Query().Has("go-get") {
			http.NotFound(w, r)
			return
		}
		asked = append(asked, name)
		content := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n" // stands for what only a release has
		if name == "platform.yaml" || name == "configuration.yaml" {
			content = string(read(t, "package/"+name))
		}
		_, _ = w.Write([]byte(content))
	}))
	defer server.Close()
	dir := t.TempDir()
	content := strings.ReplaceAll(string(read(t, "install/release/kustomization.yaml")), release, server.URL)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	got := names(kustomize(t, dir))
	want := slices.Sorted(slices.Values(slices.Concat(names(documents(t, read(t, "package/platform.yaml"))), packages,
		[]string{"ConfigMap roles.yaml", "ConfigMap verification.yaml"})))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"platform.yaml", "roles.yaml", "verification.yaml", "configuration.yaml"}, asked); diff != "" {
		t.Errorf("files of the release: -want, +got:\n%s", diff)
	}
}

// TestMirrorIsCopy shows that the overlay has the file that people get. Kustomize reads no file outside of its folder.
func TestMirrorIsCopy(t *testing.T) {
	if diff := cmp.Diff(string(read(t, "package/mirror.yaml")), string(read(t, "install/mirror/mirror.yaml"))); diff != "" {
		t.Errorf("copy package/mirror.yaml to install/mirror: -want, +got:\n%s", diff)
	}
}

// TestWaves shows in which order Argo CD applies what there is, and that neither tool deletes a package.
func TestWaves(t *testing.T) {
	waves := map[string]string{
		"ImageConfig": "10", "DeploymentRuntimeConfig": "10", "Function": "20", "Provider": "20", "Configuration": "30",
		"EnvironmentConfig": "40", "ClusterProviderConfig": "50",
	}
	kept := map[string]bool{"Function": true, "Provider": true, "Configuration": true}
	seen := map[string]bool{}
	for _, o := range kustomize(t, filepath.Join(root, "install/argocd/capstan")) {
		kind := text(o, "kind")
		seen[kind] = true
		if got := text(o, "metadata", "annotations", "argocd.argoproj.io/sync-wave"); got != waves[kind] {
			t.Errorf("%s is in wave %q, want %q", kind, got, waves[kind])
		}
		if got := text(o, "metadata", "annotations", "argocd.argoproj.io/sync-options"); kept[kind] != (got == "Prune=false,Delete=false") {
			t.Errorf("%s has the options %q", kind, got)
		}
	}
	for kind := range waves {
		if !seen[kind] {
			t.Errorf("no %s to put into a wave", kind)
		}
	}
	for _, o := range kustomize(t, filepath.Join(root, "install/flux/capstan")) {
		if got := text(o, "metadata", "annotations", "kustomize.toolkit.fluxcd.io/prune"); kept[text(o, "kind")] != (got == "disabled") {
			t.Errorf("%s may be pruned: %q", text(o, "kind"), got)
		}
	}
	// A patch that sets all annotations would lose those that are there.
	for _, file := range []string{"package/platform.yaml", "package/configuration.yaml"} {
		for _, o := range documents(t, read(t, file)) {
			if at(o, "metadata", "annotations") != nil && waves[text(o, "kind")] != "" {
				t.Errorf("%s: the waves would overwrite the annotations of %s", file, names([]map[string]any{o}))
			}
		}
	}
}

// TestPaths shows that what is applied exists, and that what is waited for does.
func TestPaths(t *testing.T) {
	applied := append(documents(t, read(t, "install/argocd/applications.yaml")), documents(t, read(t, "install/flux/capstan.yaml"))...)
	applied = append(applied, documents(t, read(t, "install/flux/services.yaml"))...)
	known := map[string]bool{}
	for _, o := range applied {
		known[text(o, "metadata", "name")] = true
		path := text(o, "spec", "source", "path") + text(o, "spec", "path")
		if strings.Contains(path, "install/") {
			if _, err := os.Stat(filepath.Join(root, path, "kustomization.yaml")); err != nil {
				t.Errorf("%s: %v", text(o, "metadata", "name"), err)
			}
		}
	}
	dependencies, _ := at(documents(t, read(t, "install/flux/services.yaml"))[0], "spec", "dependsOn").([]any)
	if len(dependencies) != 1 || !known[text(dependencies[0], "name")] {
		t.Errorf("services depend on %v", dependencies)
	}
}

// TestVersions shows that everything names the same release.
func TestVersions(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "install/*/kustomization.yaml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("found %d overlays: %v", len(files), err)
	}
	for _, file := range []string{"kustomization.yaml", "configuration.yaml", "functions.yaml"} {
		files = append(files, filepath.Join(root, "package", file))
	}
	versions := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, version := range regexp.MustCompile(`v[0-9]+\.[0-9]+\.[0-9]+`).FindAllString(string(content), -1) {
			versions[version] = file
		}
	}
	if len(versions) != 1 {
		t.Errorf("found the releases %v", versions)
	}
}
