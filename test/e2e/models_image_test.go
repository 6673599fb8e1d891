// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// push a model as an image of one layer, and return its reference by digest.
func push(t *testing.T, repository string, w weights) string {
	t.Helper()
	var layer bytes.Buffer
	archive := tar.NewWriter(&layer)
	for path, content := range w {
		if err := archive.WriteHeader(&tar.Header{Name: path, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(archive, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.ConfigFile(empty.Image, &ggcr.ConfigFile{OS: "linux", Architecture: runtime.GOARCH})
	if err != nil {
		t.Fatal(err)
	}
	if image, err = mutate.AppendLayers(image, l); err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	ref := os.Getenv("CAPSTAN_REGISTRY") + "/" + repository + "@" + digest.String()
	to, err := name.NewDigest(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(to, image, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}

	return ref
}

// TestModelFromImage mounts an image, and downloads one.
func TestModelFromImage(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	v1, v2 := weightsOf("v1 of an image"), weightsOf("v2 of an image")
	first, second := push(t, "models/"+ns, v1), push(t, "models/"+ns, v2)
	nowhere := strings.ReplaceAll(first, "models/", "nowhere/")

	cases := map[string]struct {
		reason  string
		digest  func(weights) string
		missing xpv2.ConditionReason
	}{
		"volume": {
			reason: "The node mounts the image.",
			digest: func(weights) string { return "" }, missing: v1alpha1.ReasonImagePullFailed,
		},
		"download": {
			reason: "The companion downloads what has to be compared.",
			digest: weights.digest, missing: v1alpha1.ReasonModelNotFound,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := hostOf(ns, name)
			of := func(ref string, w weights) *v1alpha1.Algorithm {
				return serving(ns, name, v1alpha1.Model{URI: "oci://" + ref, Digest: tc.digest(w)})
			}
			create(t, of(first, v1))
			eventually(t, "v1 is served", v1.serves(host))
			edit(t, of(nowhere, v1))
			eventually(t, "a missing image is reported", algorithmCondition(ns, name, v1alpha1.TypeUpdated, corev1.ConditionFalse, tc.missing, "nowhere/"))
			if err := v1.serves(host)(t.Context()); err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
			edit(t, of(second, v2))
			within(t, 2*timeout, "v2 is served", v2.serves(host))
		})
	}
}

// TestModelFromVolume serves a model that a pod has written to a claim. The server is a shell that tries to write there
// first.
func TestModelFromVolume(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	v1 := weightsOf("v1")
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "models"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Mi")}},
		},
	}
	if err := kube.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	fmt.Fprint(&script, "set -e; mkdir -p /to/reco/1/config")
	for path, content := range v1 {
		fmt.Fprintf(&script, "; printf %%s '%s' > /to/reco/1/%s", content, path)
	}
	filler := caller(t, ns, "filler", script.String(), func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "to", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
		}}}
		p.Spec.SecurityContext.FSGroup = new(int64(65532))
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "to", MountPath: "/to"}}
	})
	if !ends(t, filler) {
		t.Fatal("the claim could not be filled")
	}
	of := func(digest string) *v1alpha1.Algorithm {
		return serving(ns, "reco", v1alpha1.Model{
			URI: "pvc://" + claim.Name + "/reco/1", Digest: digest,
		}, func(a *v1alpha1.Algorithm) {
			a.Spec.Image, a.Spec.Pod = os.Getenv("CAPSTAN_BUSYBOX"), &v1alpha1.PodSpec{SecurityContext: &v1alpha1.PodSecurity{RunAsUser: new(int64(65532))}}
			a.Spec.Args = nil
			a.Spec.Command = []string{"sh", "-c", "touch /models/x && exit 1; exec httpd -f -p 8080 -h /models"}
		})
	}
	create(t, of(""))
	eventually(t, "the model is read, and cannot be written", content(host, "/"+modelFile, v1[modelFile]))
	edit(t, of(weightsOf("v2").digest()))
	eventually(t, "another digest is reported", algorithmCondition(ns, "reco", v1alpha1.TypeUpdated, corev1.ConditionFalse,
		v1alpha1.ReasonModelDigestMismatch, v1.digest(), "spec.model.digest"))
	if err := content(host, "/"+modelFile, v1[modelFile])(t.Context()); err != nil {
		t.Error(err)
	}
	edit(t, of(v1.digest()))
	eventually(t, "the right one is live", algorithmCondition(ns, "reco", v1alpha1.TypeUpdated, corev1.ConditionTrue, v1alpha1.ReasonLive))
}

// content fails until the Gateway responds with a text.
func content(host, path, want string) func(context.Context) error {
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, gateway+path, nil)
		if err != nil {
			return err
		}
		req.Host = host
		rsp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = rsp.Body.Close() }()
		body, err := io.ReadAll(rsp.Body)
		if err == nil && string(body) != want {
			err = fmt.Errorf("http://%s%s is %s: %.100q, want %q", host, path, rsp.Status, body, want)
		}

		return err
	}
}
