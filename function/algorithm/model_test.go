// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/algorithm/pods"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// TestModel looks at everything of a pod that is about its model.
func TestModel(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	companion := `
name: model
image: registry.example.org/companion:v0.1.0
resources: {requests: {cpu: 10m, memory: 128Mi}, limits: {memory: 128Mi}}
terminationMessagePolicy: FallbackToLogsOnError
securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
`
	fetch := companion + `
env: [{name: POD_UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}]
`
	cases := map[string]struct {
		reason                            string
		model                             string
		source                            *pods.Source // of a model of the registry
		init, volumes, mount, pullSecrets string
	}{
		"S3": {
			reason:  "each replica downloads for itself",
			model:   "{uri: s3://models/reco}",
			init:    fetch + `{args: [fetch, --source=s3://models/reco, --cache=/cache, --key=KEY], volumeMounts: [{name: model, mountPath: /cache}]}`,
			volumes: "[{name: model, emptyDir: {}}]",
			mount:   "{name: model, mountPath: /models, subPath: KEY, readOnly: true}",
		},
		"S3WithEverything": {
			reason: "what the spec says reaches the companion, and the Secret only it",
			model: `{uri: 's3://models/$(A)?endpoint=https://s3.example.org&region=eu-central-1',
			  credentials: bucket, digest: "` + digest + `/5", cache: {resources: {requests: {storage: 1Gi}}}}`,
			init: fetch + `{args: [fetch, "--source=s3://models/$$(A)", --cache=/cache, --key=KEY, "--digest=` + digest + `", --size=5,
			  "--endpoint=https://s3.example.org", --region=eu-central-1, --credentials=/credentials],
			  env: [{name: POD_UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}},
			    {name: KEEP_KEYS, valueFrom: {configMapKeyRef: {name: reco-models, key: keep, optional: true}}}],
			  volumeMounts: [{name: model, mountPath: /cache}, {name: model-credentials, mountPath: /credentials, readOnly: true}]}`,
			volumes: "[{name: model, persistentVolumeClaim: {claimName: reco-models}}, {name: model-credentials, secret: {secretName: bucket}}]",
			mount:   "{name: model, mountPath: /models, subPath: KEY, readOnly: true}",
		},
		"RegistryOnS3": {
			reason: "the source of a version in object storage is asked for there",
			model:  `{uri: 'models:/reco/7?endpoint=https://mlflow.example.org&s3Endpoint=https://s3.example.org'}`,
			source: &pods.Source{URI: "s3://mlflow/7/artifacts"},
			init: fetch + `{args: [fetch, "--source=s3://mlflow/7/artifacts", --cache=/cache, --key=KEY, "--endpoint=https://s3.example.org"],
			  volumeMounts: [{name: model, mountPath: /cache}]}`,
			volumes: "[{name: model, emptyDir: {}}]",
			mount:   "{name: model, mountPath: /models, subPath: KEY, readOnly: true}",
		},
		"RegistryOnHub": {
			reason: "the endpoint of the registry is none of a hub",
			model:  `{uri: 'models:/reco/7?endpoint=https://mlflow.example.org'}`,
			source: &pods.Source{URI: "hf://org/repo"},
			init: fetch + `{args: [fetch, "--source=hf://org/repo", --cache=/cache, --key=KEY, "--endpoint=https://huggingface.co"],
			  volumeMounts: [{name: model, mountPath: /cache}]}`,
			volumes: "[{name: model, emptyDir: {}}]",
			mount:   "{name: model, mountPath: /models, subPath: KEY, readOnly: true}",
		},
		"RegistryWithCredentials": {
			reason: "credentials go to servers that the spec names, and not to those that the registry names",
			model:  `{uri: 'models:/reco/7?endpoint=https://mlflow.example.org', credentials: login}`,
			source: &pods.Source{URI: "https://files.example.org/reco.onnx"},
			init: fetch + `{args: [fetch, "--source=https://files.example.org/reco.onnx", --cache=/cache, --key=KEY,
			  "--endpoint=https://mlflow.example.org", --credentials=/credentials, --registered, "--trusted=https://mlflow.example.org"],
			  volumeMounts: [{name: model, mountPath: /cache}, {name: model-credentials, mountPath: /credentials, readOnly: true}]}`,
			volumes: "[{name: model, emptyDir: {}}, {name: model-credentials, secret: {secretName: login}}]",
			mount:   "{name: model, mountPath: /models, subPath: KEY, readOnly: true}",
		},
		"Hub": {
			reason: "the revision is the companion's, the query is not",
			model:  `{uri: 'hf://org/repo@main/onnx?endpoint=https://hub.example.org', credentials: hub}`,
			init: fetch + `{args: [fetch, "--source=hf://org/repo@main/onnx", --cache=/cache, --key=KEY, "--endpoint=https://hub.example.org",
			  --credentials=/credentials], volumeMounts: [{name: model, mountPath: /cache}, {name: model-credentials, mountPath: /credentials, readOnly: true}]}`,
			volumes: "[{name: model, emptyDir: {}}, {name: model-credentials, secret: {secretName: hub}}]",
			mount:   "{name: model, mountPath: /models, subPath: KEY, readOnly: true}",
		},
		"RegistryItself": {
			reason: "what the registry hands out is asked for there, and its digest compared",
			model:  `{uri: 'models:/reco/7?endpoint=https://mlflow.example.org&s3Endpoint=https://s3.example.org'}`,
			source: &pods.Source{URI: "mlflow-artifacts:/1/7", Digest: digest},
			init: fetch + `{args: [fetch, "--source=mlflow-artifacts:/1/7", --cache=/cache, --key=KEY, "--digest=` + digest + `",
			  "--endpoint=https://mlflow.example.org"], volumeMounts: [{name: model, mountPath: /cache}]}`,
			volumes: "[{name: model, emptyDir: {}}]",
			mount:   "{name: model, mountPath: /models, subPath: KEY, readOnly: true}",
		},
		"ImageVolume": {
			reason:      "the node mounts the image, with the login that the model names beside that of the image",
			model:       "{uri: oci://r.example.org/reco:7, credentials: models}",
			volumes:     "[{name: model, image: {reference: 'r.example.org/reco:7', pullPolicy: IfNotPresent}}]",
			mount:       "{name: model, mountPath: /models, readOnly: true}",
			pullSecrets: "[{name: login}, {name: models}]",
		},
		"ImageVolumeSameLogin": {
			reason:  "a login that is there already is not named again",
			model:   "{uri: oci://r.example.org/reco:7, credentials: login}",
			volumes: "[{name: model, image: {reference: 'r.example.org/reco:7', pullPolicy: IfNotPresent}}]",
			mount:   "{name: model, mountPath: /models, readOnly: true}",
		},
		"ImageDownloaded": {
			reason: "where nodes mount no images, the companion downloads them",
			model:  `{uri: oci://r.example.org/reco:7, digest: "` + digest + `", credentials: models}`,
			init: fetch + `{args: [fetch, "--source=oci://r.example.org/reco:7", --cache=/cache, --key=KEY, "--digest=` + digest + `", --credentials=/credentials],
			  volumeMounts: [{name: model, mountPath: /cache}, {name: model-credentials, mountPath: /credentials, readOnly: true}]}`,
			volumes: "[{name: model, emptyDir: {}}, {name: model-credentials, secret: {secretName: models}}]",
			mount:   "{name: model, mountPath: /models, subPath: KEY, readOnly: true}",
		},
		"Volume": {
			reason:  "what somebody has filled is mounted as it is",
			model:   "{uri: pvc://models}",
			volumes: "[{name: model, persistentVolumeClaim: {claimName: models, readOnly: true}}]",
			mount:   "{name: model, mountPath: /models, readOnly: true}",
		},
		"VolumeVerified": {
			reason: "a volume is verified like the rest",
			model:  `{uri: pvc://models/reco/7/, digest: "` + digest + `/9"}`,
			init: companion + `{args: [verify, --model=/model, "--digest=` + digest + `", --size=9],
			  volumeMounts: [{name: model, mountPath: /model, subPath: reco/7, readOnly: true}]}`,
			volumes: "[{name: model, persistentVolumeClaim: {claimName: models, readOnly: true}}]",
			mount:   "{name: model, mountPath: /models, subPath: reco/7, readOnly: true}",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := gathered(t, newWorld(t, "{image: x, pod: {imagePullSecrets: [{name: login}]}, model: "+tc.model+"}").platform())
			if tc.source != nil {
				s.Model = pods.NewSource(s.Spec.Model, tc.source.URI, tc.source.Digest)
			}
			pod := compose.Map(rendered(t, s), "spec")
			container := pod["containers"].([]any)[0].(map[string]any)
			got := map[string]any{
				"init": pod["initContainers"], "volumes": pod["volumes"], "pullSecrets": pod["imagePullSecrets"], "mounts": container["volumeMounts"],
			}
			filled := func(text string) string {
				return strings.NewReplacer("KEEP_KEYS", "KEEP_KEYS", "KEY", s.Model.Key).Replace(text)
			}
			want := parse(t, filled("volumes: "+tc.volumes+"\nmounts: ["+tc.mount+"]"))
			want["pullSecrets"] = parse(t, "x: [{name: login}]")["x"]
			if tc.pullSecrets != "" {
				want["pullSecrets"] = parse(t, "x: "+tc.pullSecrets)["x"]
			}
			want["init"] = nil
			if tc.init != "" {
				common, own, _ := strings.Cut(filled(tc.init), "\n{")
				c := parse(t, common)
				maps.Copy(c, parse(t, "{"+own))
				want["init"] = []any{c}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\npod: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestModelImages shows when an image is downloaded in place of mounted, and that the setting restarts nothing.
func TestModelImages(t *testing.T) {
	cases := map[string]struct {
		reason  string
		setting v1alpha1.ModelDelivery
		with    string
		mounted bool
	}{
		"Mounted":  {reason: "a node keeps images by itself", setting: v1alpha1.DeliverImageVolume, mounted: true},
		"Platform": {reason: "nodes that mount no images are the platform's", setting: v1alpha1.DeliverInitContainer},
		"Digest":   {reason: "a node compares nothing", setting: v1alpha1.DeliverImageVolume, with: ", digest: sha256:" + strings.Repeat("a", 64)},
		"Cache": {
			reason: "a node has no shared cache", setting: v1alpha1.DeliverImageVolume, with: ", cache: {resources: {requests: {storage: 1Gi}}}",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := serving(t, "{image: x, model: {uri: oci://r.example.org/reco:7"+tc.with+"}}")
			template := func() any { return compose.Map(object(t, w.plan(), names.Deployment(names.SlotA)), "spec", "template") }
			before := template()
			w.request.Settings.Algorithm.ModelImages = tc.setting
			if diff := cmp.Diff(before, template()); diff != "" {
				t.Errorf("pods that run change: -before the setting, +after:\n%s", diff)
			}
			fresh := newWorld(t, "{image: x, model: {uri: oci://r.example.org/reco:7"+tc.with+"}}").platform()
			fresh.request.Settings.Algorithm.ModelImages = tc.setting
			if got := pods.MountsImage(gathered(t, fresh).Spec.Model); got != tc.mounted {
				t.Errorf("%s: mounted: want %t, got %t", tc.reason, tc.mounted, got)
			}
		})
	}
}

// TestModelKeys shows which models share a folder of a cache.
func TestModelKeys(t *testing.T) {
	key := func(model string) string { return gathered(t, newWorld(t, "{image: x, model: "+model+"}")).Model.Key }
	first := key("{uri: s3://models/reco}")
	if !regexp.MustCompile(`^[a-z0-9]{1,63}$`).MatchString(first) {
		t.Errorf("%q cannot be the name of a folder", first)
	}
	for model, same := range map[string]bool{
		"{uri: s3://models/reco, cache: {resources: {requests: {storage: 1Gi}}}}":     true,
		"{uri: s3://models/reco, credentials: a}":                                     true,
		"{uri: 's3://models/reco?region=eu-central-1'}":                               true,
		"{uri: s3://models/other}":                                                    false,
		"{uri: 's3://models/reco?endpoint=https://s3.example.org'}":                   false,
		"{uri: s3://models/reco, digest: 'sha256:" + strings.Repeat("a", 64) + "'}":   false,
		"{uri: s3://models/reco, digest: 'sha256:" + strings.Repeat("a", 64) + "/5'}": false,
	} {
		if got := key(model); (got == first) != same {
			t.Errorf("the model %s has key %s, the first has %s: want the same: %t", model, got, first, same)
		}
	}
	registry := gathered(t, newWorld(t, "{image: x, model: {uri: models:/reco@a}}")).Spec.Model
	if pods.NewSource(registry, "s3://a/7", "").Key == pods.NewSource(registry, "s3://a/8", "").Key {
		t.Error("two versions have the same key")
	}
}

// TestModelsInUse tells downloads which models pods mount from the cache, so that no revision pushes the model of another out of
// it.
func TestModelsInUse(t *testing.T) {
	spec := func(uri, more string) string {
		return "{image: x, model: {uri: " + uri + more + "}}"
	}
	cases := map[string]struct {
		reason        string
		before, after string
		want          int
	}{
		"Another":    {"the live model is kept", spec("s3://models/a", ", cache: {resources: {requests: {storage: 1Gi}}}"), spec("s3://models/b", ", cache: {resources: {requests: {storage: 1Gi}}}"), 2},
		"Same":       {"one model is one, whoever mounts it", spec("s3://models/a", ", cache: {resources: {requests: {storage: 1Gi}}}"), "{image: y, model: {uri: s3://models/a, cache: {resources: {requests: {storage: 1Gi}}}}}", 1},
		"NotCached":  {"a model on the disk of a node is not in the cache", spec("s3://models/a", ""), spec("s3://models/b", ", cache: {resources: {requests: {storage: 1Gi}}}"), 1},
		"NoCache":    {"the cache stays as long as pods mount it", spec("s3://models/a", ", cache: {resources: {requests: {storage: 1Gi}}}"), spec("s3://models/b", ""), 1},
		"FromVolume": {"the path in a volume is no key", "{image: x, model: {uri: pvc://m/a/b}}", spec("s3://models/b", ", cache: {resources: {requests: {storage: 1Gi}}}"), 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := serving(t, tc.before)
			w.edit(tc.after)
			kept := strings.Split(compose.Text(object(t, w.plan(), names.ModelsKept), "data", pods.KeptKey), ",")
			if len(kept) != tc.want || kept[0] == "" {
				t.Errorf("%s: kept %v, want %d", tc.reason, kept, tc.want)
			}
		})
	}
}

func TestModelCache(t *testing.T) {
	spec := func(cache string) string {
		return "{image: x, model: {uri: s3://models/reco, cache: " + cache + "}}"
	}
	claim := func(fields string) composetest.Object {
		o := parse(t, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: reco-models}}")
		o["spec"] = parse(t, fields)
		return o
	}
	cases := map[string]struct {
		reason   string
		spec     string
		observed composetest.Object
		want     string
		problem  string
	}{
		"Defaults": {
			reason: "all replicas write to it, in the cluster's class",
			spec:   spec("{resources: {requests: {storage: 20Gi}}}"),
			want:   "{accessModes: [ReadWriteMany], resources: {requests: {storage: 20Gi}}}",
		},
		"Chosen": {
			reason: "what the spec says",
			spec:   spec("{resources: {requests: {storage: 20Gi}}, storageClassName: fast, accessModes: [ReadWriteOnce]}"),
			want:   "{accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 20Gi}}}",
		},
		"Grows": {
			reason:   "a claim can be made larger",
			spec:     spec("{resources: {requests: {storage: 30Gi}}}"),
			observed: claim("{accessModes: [ReadWriteMany], storageClassName: standard, resources: {requests: {storage: 20Gi}}}"),
			want:     "{accessModes: [ReadWriteMany], resources: {requests: {storage: 30Gi}}}",
		},
		"Shrinks": {
			reason:   "a claim cannot be made smaller",
			spec:     spec("{resources: {requests: {storage: 10Gi}}}"),
			observed: claim("{accessModes: [ReadWriteMany], storageClassName: standard, resources: {requests: {storage: 20Gi}}}"),
			want:     "{accessModes: [ReadWriteMany], resources: {requests: {storage: 20Gi}}}",
		},
		"OtherClass": {
			reason:   "a claim that lingers keeps its class",
			spec:     spec("{resources: {requests: {storage: 10Gi}}, storageClassName: fast}"),
			observed: claim("{accessModes: [ReadWriteMany], storageClassName: standard}"),
			problem:  `spec.model.cache.storageClassName: "fast": the volume that exists has "standard", and keeps it: set that, or delete PersistentVolumeClaim "reco-models"`,
		},
		"OtherMode": {
			reason:   "a claim that lingers keeps its access mode",
			spec:     spec("{resources: {requests: {storage: 10Gi}}}"),
			observed: claim("{accessModes: [ReadWriteOnce]}"),
			problem:  `spec.model.cache.accessModes[0]: "ReadWriteMany": the volume that exists has "ReadWriteOnce", and keeps it`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.spec)
			if tc.observed != nil {
				w.request.Observed = map[string]compose.Object{names.ModelCache: tc.observed}
			}
			p := w.plan()
			if c := condition(p, v1alpha1.TypeAccepted); !strings.HasPrefix(c.Message, tc.problem) || tc.problem == "" && c.Status != "True" {
				t.Errorf("%s\nAccepted: %s %q", tc.reason, c.Status, c.Message)
			}
			if tc.problem != "" {
				return
			}
			if diff := cmp.Diff(parse(t, tc.want), compose.Map(object(t, p, names.ModelCache), "spec")); diff != "" {
				t.Errorf("%s\nclaim: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if o := object(t, newWorld(t, "{image: x, model: {uri: s3://models/reco}}").plan(), names.ModelCache); o != nil {
		t.Errorf("nobody asked for a cache: %v", o)
	}
}
