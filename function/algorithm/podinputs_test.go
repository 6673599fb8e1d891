// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// podInputs are the fields that reach the pods of a revision.
var podInputs = []string{
	"args[]", "command[]", "image", "port", "protocol",
	"availability.drainSeconds", "availability.zones",
	"config{}",
	"env[].name", "env[].value", "env[].valueFrom.configMapKeyRef.key", "env[].valueFrom.configMapKeyRef.name",
	"env[].valueFrom.secretKeyRef.key", "env[].valueFrom.secretKeyRef.name",
	"model.credentials", "model.digest", "model.uri",
	"podMetadata.annotations{}", "podMetadata.labels{}", "pod.imagePullSecrets[].name", "pod.securityContext.runAsUser", "pod.serviceAccountName",
	"pod.initContainers[].image", "pod.initContainers[].name", "pod.initContainers[].securityContext.allowPrivilegeEscalation",
	"pod.initContainers[].securityContext.privileged", "pod.initContainers[].securityContext.runAsNonRoot",
	"pod.initContainers[].securityContext.runAsUser",
	"pod.containers[].image", "pod.containers[].name", "pod.containers[].securityContext.allowPrivilegeEscalation",
	"pod.containers[].securityContext.privileged", "pod.containers[].securityContext.runAsNonRoot", "pod.containers[].securityContext.runAsUser",
	"pod.volumes[].name",
	"volumeMounts[].mountPath", "volumeMounts[].name", "volumeMounts[].readOnly", "volumeMounts[].subPath",
	"probes.path", "probes.startupSeconds", "probes.warmUp.body", "probes.warmUp.contentType", "probes.warmUp.path", "probes.warmUp.requests",
	"resources.cpu", "resources.deviceRequest.count", "resources.deviceRequest.deviceClassName",
	"resources.deviceRequest.selectors[].cel.expression",
	"resources.gpu", "resources.gpuCount", "resources.gpuProducts[]", "resources.memory", "resources.sharedMemory",
	"pod.nodeSelector{}", "pod.priorityClassName", "pod.runtimeClassName", "pod.tolerations[].effect",
	"pod.tolerations[].key", "pod.tolerations[].operator", "pod.tolerations[].tolerationSeconds",
	"pod.tolerations[].value",
	"secrets[].name", "secrets[].rotate",
}

// TestEveryFieldIsClassified fails for a field that nobody has decided about: whether another value of it makes a revision, which
// replaces every pod.
func TestEveryFieldIsClassified(t *testing.T) {
	composetest.Classified(t, theDefinition().Fields(), managed, podInputs)
}

// TestUsual pins the values that mean the same as none. Another value, or one less, makes a revision of every Algorithm at an
// upgrade.
func TestUsual(t *testing.T) {
	want := map[string]any{
		"port": 8080.0, "protocol": "HTTP", "secrets[].rotate": "Restartless",
		"probes.startupSeconds": 600.0, "probes.warmUp.requests": 10.0,
		"probes.warmUp.contentType": "application/json", "availability.zones": "Preferred", "availability.drainSeconds": 30.0,
		"resources.gpuCount": 1.0, "resources.deviceRequest.count": 1.0,
	}
	got := maps.Clone(usual())
	maps.DeleteFunc(got, func(path string, value any) bool { return value == nil || !slices.Contains(podInputs, path) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestRevisionsOfOneSpec: what a spec only refers to makes revisions, and leaves nothing behind in what is remembered of the spec.
func TestRevisionsOfOneSpec(t *testing.T) {
	spec := v1alpha1.AlgorithmSpec{Image: "registry.example.org/one-spec:1", Model: &v1alpha1.Model{URI: "registry://reco"}}
	plain := target{spec: &spec, written: &spec}
	rotated, resolved := plain, plain
	rotated.fingerprints = map[string]string{"token": "f1"}
	resolved.resolved = &v1alpha1.ModelStatus{Version: "3", Source: "s3://models/reco/3"}
	names := map[string]string{}
	for round := range 2 {
		for name, of := range map[string]target{"plain": plain, "rotated": rotated, "resolved": resolved} {
			got, err := of.name()
			if err != nil {
				t.Fatal(err)
			}
			if was := names[name]; round > 0 && got != was {
				t.Errorf("%s: the same target is revision %s, and was %s", name, got, was)
			}
			names[name] = got
		}
	}
	if names["plain"] == names["rotated"] || names["plain"] == names["resolved"] || names["rotated"] == names["resolved"] {
		t.Errorf("different targets have one revision: %v", names)
	}
}
