//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// hubCommit is the commit of the branch main of a repository.
const hubCommit = "5c38ec7c405ec4b44b94cc5a9bb96e735b38267a"

// webFiles of a server that has a model as one file, and another one as a repository of a hub. It answers with files, and pays no regard
// to the query of a URL.
func webFiles(one, repository weights) map[string]string {
	const repo = "org/repo"
	files := map[string]string{
		"reco/1/" + modelFile:                   one[modelFile],
		"api/models/" + repo + "/revision/main": `{"sha": "` + hubCommit + `"}`,
	}
	var entries []string
	for name, content := range repository {
		files[repo+"/resolve/"+hubCommit+"/"+name] = content
		if name == modelFile {
			entries = append(entries, fmt.Sprintf(`{"type": "file", "path": "%s", "size": %d, "oid": "", "lfs": {"oid": "%x", "size": %d}}`,
				name, len(content), sha256.Sum256([]byte(content)), len(content)))
		} else {
			sum := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content))
			entries = append(entries, fmt.Sprintf(`{"type": "file", "path": "%s", "size": %d, "oid": "%x"}`, name, len(content), sum))
		}
	}
	files["api/models/"+repo+"/tree/"+hubCommit] = "[" + strings.Join(entries, ", ") + "]"

	return files
}

// TestModelFromHTTP serves a file of a web server, and then a repository of a hub, both in a pod behind a Service.
func TestModelFromHTTP(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	one, repository := weights{modelFile: "weights of one file"}, weightsOf("v2 of a hub")
	var script strings.Builder
	fmt.Fprint(&script, "set -e; cd /www")
	for path, content := range webFiles(one, repository) {
		fmt.Fprintf(&script, "; mkdir -p %s; printf %%s '%s' > %s", path[:strings.LastIndexByte(path, '/')], content, path)
	}
	fmt.Fprint(&script, "; exec httpd -f -p 8080 -h /www")
	caller(t, ns, "files", script.String(), func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "files"}
		p.Spec.Volumes = []corev1.Volume{{Name: "www", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		p.Spec.SecurityContext.FSGroup = new(int64(65532))
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "www", MountPath: "/www"}}
	})
	if err := kube.Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "files"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "files"},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}); err != nil {
		t.Fatal(err)
	}
	server := "http://files." + ns + ".svc"
	reco := func(m v1alpha1.Model) *v1alpha1.Algorithm { return serving(ns, "reco", m) }

	create(t, reco(v1alpha1.Model{URI: server + "/reco/1/" + modelFile, Digest: fmt.Sprintf("%s/%d", one.digest(), one.size())}))
	eventually(t, "the file is served", one.serves(host))
	blocks := func(what string, m v1alpha1.Model, reason xpv2.ConditionReason, words ...string) {
		t.Helper()
		edit(t, reco(m))
		eventually(t, what+" is reported", algorithmCondition(ns, "reco", v1alpha1.TypeUpdated, corev1.ConditionFalse, reason, words...))
		if err := one.serves(host)(t.Context()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	blocks("a missing file", v1alpha1.Model{URI: server + "/reco/2/" + modelFile, Digest: one.digest()},
		v1alpha1.ReasonModelNotFound, "/reco/2/")
	blocks("a missing repository", v1alpha1.Model{URI: "hf://org/none?endpoint=" + server}, v1alpha1.ReasonModelNotFound, "hf://org/none")

	edit(t, reco(v1alpha1.Model{URI: "hf://org/repo?endpoint=" + server, Digest: repository.digest()}))
	within(t, 2*timeout, "the repository is served", repository.serves(host))
	eventually(t, "its commit is in the log", func(ctx context.Context) error {
		for _, said := range fetched(t, ns, "reco") {
			if slices.Contains(said, "resolved") {
				return nil
			}
		}

		return errors.New("no pod has logged a commit")
	})
}
