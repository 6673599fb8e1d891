// SPDX-License-Identifier: Apache-2.0

//go:build e2e && release

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// Names in the examples of docs/install.md.
const (
	pageNamespace = "demo"
	pageDatabase  = "orders-db"
)

// packagesOfARelease by their kinds.
var packagesOfARelease = map[string]string{
	"Configuration": "capstan-dev-capstan", "Function": functionName, "Provider": "capstan-dev-provider-capstan",
}

// TestRelease follows docs/install.md with only the files of two releases: it runs the commands of the page in a
// cluster that verifies signatures. hack/e2e-release builds the releases and the cluster; CAPSTAN_RELEASES is their
// directory.
func TestRelease(t *testing.T) {
	releases := os.Getenv("CAPSTAN_RELEASES")
	if releases == "" {
		t.Fatal("CAPSTAN_RELEASES is not set: run this by `make e2e-release`")
	}
	first, next := filepath.Join(releases, os.Getenv("CAPSTAN_VERSION")), filepath.Join(releases, os.Getenv("CAPSTAN_NEXT_VERSION"))
	install, upgrade, remove := commands(t, "install.md", "Install"), commands(t, "install.md", "Upgrade"), commands(t, "install.md", "Remove")
	if len(install) != 4 || len(upgrade) != 1 || len(remove) != 4 {
		t.Fatalf("the page has another number of steps than this test knows: %d, %d and %d", len(install), len(upgrade), len(remove))
	}
	packages := len(install) - 1
	for _, step := range install[:packages] {
		paste(t, first, step)
	}
	if !t.Run("ChangedPackagesAreRefused", changedPackagesAreRefused) {
		t.FailNow() // what follows would prove nothing
	}
	paste(t, first, install[packages])
	installed(t, first)

	a := algorithm(pageNamespace, "reco")
	d := database(pageNamespace, pageDatabase, func(d *v1alpha1.Database) {
		d.Spec.Replicas, d.Spec.DeletionProtection = 1, nil
	})
	if err := kube.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pageNamespace}}); err != nil {
		t.Fatal(err)
	}
	create(t, a)
	if err := apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	within(t, creation, "the Database is Ready", running(d))

	t.Run("UpgradeRestartsNothing", func(t *testing.T) {
		before := podsOf(t)
		paste(t, next, upgrade[0])
		installed(t, next)
		// An edit of each proves that the new function handles both.
		for _, o := range []client.Object{a, d} {
			o.SetAnnotations(map[string]string{"example.org/seen": "true"})
			if err := apply(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "the Algorithm serves on", ready(a.Namespace, a.Name, v1alpha1.PhaseReady, 1))
		eventually(t, "the Database serves on", running(d))
		if diff := cmp.Diff(before, podsOf(t)); diff != "" {
			t.Errorf("pods and their restarts: -before, +after:\n%s", diff)
		}
	})

	t.Run("Remove", func(t *testing.T) { removed(t, next, remove) })
}

// changedPackagesAreRefused pushes packages that differ from the released one in one byte: one without a signature, and
// one with the signature of the original.
func changedPackagesAreRefused(t *testing.T) {
	repository, err := name.NewRepository(os.Getenv("CAPSTAN_REGISTRY") + "/capstan-dev/capstan")
	if err != nil {
		t.Fatal(err)
	}
	original, err := remote.Image(repository.Tag(os.Getenv("CAPSTAN_VERSION")))
	if err != nil {
		t.Fatal(err)
	}
	digest, err := original.Digest()
	if err != nil {
		t.Fatal(err)
	}
	signatures, err := remote.Image(repository.Tag("sha256-" + digest.Hex + ".sig"))
	if err != nil {
		t.Fatalf("the release is not signed: %v", err)
	}
	for label, signed := range map[string]bool{"unsigned": false, "changed": true} {
		t.Run(label, func(t *testing.T) {
			img := withOneByteChanged(t, original, label)
			digest, err := img.Digest()
			if err != nil {
				t.Fatal(err)
			}
			if err := remote.Write(repository.Digest(digest.String()), img); err != nil {
				t.Fatal(err)
			}
			if signed {
				if err := remote.Write(repository.Tag("sha256-"+digest.Hex+".sig"), signatures); err != nil {
					t.Fatal(err)
				}
			}
			u := packageObject("Configuration", "capstan-"+label)
			if err := unstructured.SetNestedField(u.Object, "ghcr.io/capstan-dev/capstan@"+digest.String(), "spec", "package"); err != nil {
				t.Fatal(err)
			}
			if err := kube.Create(t.Context(), u); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = kube.Delete(context.Background(), u) })
			eventually(t, "Crossplane refuses it, and says why", func(ctx context.Context) error {
				if err := kube.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
					return err
				}
				err := packageHealthy(u)
				if err == nil {
					t.Fatal("Crossplane installed it")
				}
				if !strings.Contains(err.Error(), "signature verification failed") {
					return err
				}
				t.Log(err)

				return nil
			})
		})
	}
}

// withOneByteChanged returns a package whose content differs in one byte, and another byte for each label.
func withOneByteChanged(t *testing.T, img v1.Image, label string) v1.Image {
	t.Helper()
	manifest, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	changed := empty.Image
	for i, layer := range layers {
		if manifest.Layers[i].Annotations["io.crossplane.xpkg"] == "base" {
			reader, err := layer.Uncompressed()
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(reader)
			if err != nil {
				t.Fatal(err)
			}
			at := bytes.Index(content, []byte("description: "))
			if at < 0 {
				t.Fatal("cannot find a byte to change")
			}
			content[at+len("description: ")+1] = label[0]
			if layer, err = tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }); err != nil {
				t.Fatal(err)
			}
		}
		if changed, err = mutate.Append(changed, mutate.Addendum{Layer: layer, Annotations: manifest.Layers[i].Annotations}); err != nil {
			t.Fatal(err)
		}
	}
	fresh, err := changed.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	fresh.Config = config.Config
	if changed, err = mutate.ConfigFile(changed, fresh); err != nil {
		t.Fatal(err)
	}

	return changed
}

// installed expects exactly the packages in configuration.yaml of a release, healthy. Crossplane does not record a
// successful verification, so that only a rejected package proves that it verifies.
func installed(t *testing.T, folder string) {
	t.Helper()
	pinned, err := os.ReadFile(filepath.Join(folder, "configuration.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for kind, name := range packagesOfARelease {
		u := packageObject(kind, name)
		eventually(t, kind+" is healthy", func(ctx context.Context) error {
			if err := kube.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
				return err
			}

			return packageHealthy(u)
		})
		reference, _, _ := unstructured.NestedString(u.Object, "spec", "package")
		current, _, _ := unstructured.NestedString(u.Object, "status", "currentIdentifier")
		if reference != current || !strings.Contains(string(pinned), "package: "+reference+"\n") {
			t.Errorf("%s runs %q and is to run %q, which configuration.yaml has to name", kind, current, reference)
		}
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("pkg.crossplane.io/v1")
		list.SetKind(kind + "List")
		if err := kube.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(list.Items, func(u unstructured.Unstructured) bool { return u.GetName() != name && packageHealthy(&u) == nil }) {
			t.Errorf("Crossplane installed another %s beside %s", kind, name)
		}
	}
}

// removed follows the page's last section, and checks that its last step stops while there is a Database.
func removed(t *testing.T, folder string, steps []string) {
	t.Helper()
	if out := paste(t, folder, steps[0]); !strings.Contains(out, pageDatabase) || !strings.Contains(out, "reco") {
		t.Errorf("the first step has to list what there is, got\n%s", out)
	}
	out, err := try(t, folder, steps[3])
	if err == nil || !strings.Contains(out, "Delete these first") || !strings.Contains(out, "database.capstan.dev/"+pageDatabase) {
		t.Fatalf("packages go only when nothing is left: got %v and\n%s", err, out)
	}
	for kind, name := range packagesOfARelease {
		if err := kube.Get(t.Context(), types.NamespacedName{Name: name}, packageObject(kind, name)); err != nil {
			t.Fatalf("%s is gone while there is a Database: %v", kind, err)
		}
	}
	for _, step := range steps[1:] {
		paste(t, folder, step)
	}
	eventually(t, "no CRD of Capstan is left", func(ctx context.Context) error {
		out, err := exec.CommandContext(ctx, "kubectl", "get", "customresourcedefinitions", "--output=name").Output()
		if err == nil && bytes.Contains(out, []byte("capstan.dev")) {
			err = fmt.Errorf("there is still one: %s", out)
		}

		return err
	})
	eventually(t, "no pod of the function or the provider is left", func(ctx context.Context) error {
		list := &corev1.PodList{}
		if err := kube.List(ctx, list, client.InNamespace(system)); err != nil {
			return err
		}
		if i := slices.IndexFunc(list.Items, func(p corev1.Pod) bool { return strings.HasPrefix(p.Name, "capstan-dev") }); i >= 0 {
			return errors.New(list.Items[i].Name)
		}

		return nil
	})
	claims, secrets := &corev1.PersistentVolumeClaimList{}, &corev1.SecretList{}
	of := []client.ListOption{client.InNamespace(pageNamespace), client.MatchingLabels{"capstan.dev/database": pageDatabase}}
	if err := errors.Join(kube.List(t.Context(), claims, of...), kube.List(t.Context(), secrets, of...)); err != nil {
		t.Fatal(err)
	}
	if len(claims.Items) == 0 || len(secrets.Items) == 0 {
		t.Errorf("volumes and Secrets of the Database stay: got %d and %d", len(claims.Items), len(secrets.Items))
	}
	for _, o := range []client.Object{packageObject("ImageConfig", "capstan-verification"), packageObject("DeploymentRuntimeConfig", "function-capstan")} {
		o.(*unstructured.Unstructured).SetAPIVersion("pkg.crossplane.io/v1beta1")
		if err := kube.Get(t.Context(), client.ObjectKeyFromObject(o), o); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("%s is still there: %v", o.GetName(), err)
		}
	}
}

// paste runs a block of commands as if pasted into a shell, and fails when it fails.
func paste(t *testing.T, folder, block string) string {
	t.Helper()
	out, err := try(t, folder, block)
	if err != nil {
		t.Fatalf("this block of docs/install.md fails: %v\n%s\n%s", err, block, out)
	}

	return out
}

// podsOf the namespace by name and UID, with the restarts of their containers.
func podsOf(t *testing.T) map[string]int32 {
	t.Helper()
	list := &corev1.PodList{}
	if err := kube.List(t.Context(), list, client.InNamespace(pageNamespace)); err != nil {
		t.Fatal(err)
	}
	found := map[string]int32{}
	for _, p := range list.Items {
		if p.Status.Phase == corev1.PodSucceeded {
			continue // the pod of a Job
		}
		key := p.Name + " " + string(p.UID)
		found[key] = 0
		for _, c := range p.Status.ContainerStatuses {
			found[key] += c.RestartCount
		}
	}

	return found
}

func packageObject(kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("pkg.crossplane.io/v1")
	u.SetKind(kind)
	u.SetName(name)

	return u
}
