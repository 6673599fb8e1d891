// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/function/algorithm/modeluri"
	"github.com/capstan-dev/capstan/function/algorithm/pods"
	"github.com/capstan-dev/capstan/function/compose"
)

// companionImage of the platform under test.
const companionImage = "registry.example.org/companion:v0.1.0"

// platform sets what a platform team decides.
func (w *world) platform() *world {
	a := &w.request.Settings.Algorithm
	a.CompanionImage = companionImage
	a.Prometheus = &xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "prometheus"}
	a.MLflow = &xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "mlflow"}
	a.MetricsNamespaces = []string{"monitoring"}
	return w
}

// gathered inputs of the pods of an accepted spec, with its model as far as the spec says it.
func gathered(tb testing.TB, w *world) pods.Inputs {
	tb.Helper()
	f, err := gather(w.request)
	if err != nil {
		tb.Fatal(err)
	}
	if len(f.problems) > 0 {
		tb.Fatalf("the spec is not accepted: %v", f.problems)
	}
	in := f.inputs(target{spec: &f.spec, written: &f.written})
	if m := f.spec.Model; m != nil && modeluri.Parse(m.URI).Scheme != modeluri.Registry {
		in.Model = pods.NewSource(m, "", "")
	}
	return in
}

// rendered pod template.
func rendered(tb testing.TB, in pods.Inputs) map[string]any {
	tb.Helper()
	raw, err := json.Marshal(in.Template())
	if err != nil {
		tb.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		tb.Fatal(err)
	}
	return m
}

// rich spec: every way in which a field of the spec reaches a pod, but for what the spec of plans has.
const rich = `
image: x
pod: {securityContext: {runAsUser: 1000}}
env: [{name: B, value: spec}, {name: A}, {name: D, value: $(B)}]
config: {a: b}
secrets:
- {name: z.license, rotate: Rolling}
- {name: a-license, rotate: Rolling}
- {name: token}
resources: {gpu: nvidia.com/mig-1g.10gb, gpuProducts: [A100, H100]}
probes:
  path: /healthz?deep=1
  startupSeconds: 901
  warmUp: {path: /predict, requests: 50, body: '{"cost": "$(USER)"}'}
availability: {drainSeconds: 120}
metrics: {port: 9090}
model: {uri: s3://models/reco, credentials: models, cache: {resources: {requests: {storage: 1Gi}}}}
volumeMounts: [{name: secret-a-license, mountPath: /licenses}]
`

func TestPodTemplate(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		path   []string
		want   string
	}{
		"Labels": {
			"the same in either slot", "{image: x}",
			[]string{"metadata"},
			"{labels: {app.kubernetes.io/name: reco, app.kubernetes.io/managed-by: capstan, capstan.dev/algorithm: reco}}",
		},
		"Spread": {
			"each revision by itself, whatever its slot", "{image: x, availability: {zones: None}}",
			[]string{"spec", "topologySpreadConstraints"},
			`[{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, nodeTaintsPolicy: Honor,
			   labelSelector: {matchLabels: {capstan.dev/algorithm: reco}}, matchLabelKeys: [pod-template-hash]}]`,
		},
		"Annotations": {
			"fingerprints of Secrets in one hash, and the body of the warm-up", rich,
			[]string{"metadata", "annotations"},
			`{capstan.dev/secrets: a606f5922b, capstan.dev/warm-up-body: '{"cost": "$(USER)"}'}`,
		},
		"Env": {
			"in their order, because one may refer to those before it; an empty one has no value", rich,
			[]string{"spec", "containers", "env"},
			`[{name: B, value: spec}, {name: A}, {name: D, value: $(B)}]`,
		},
		"Ports": {
			"a port of metrics is no part of a revision", rich,
			[]string{"spec", "containers", "ports"},
			"[{name: http, containerPort: 8080, protocol: TCP}]",
		},
		"Volumes": {
			"Secrets by name, and a name that no volume may have as a hash", rich,
			[]string{"spec", "volumes"},
			`[{name: config, configMap: {name: reco-config-db4a7ecb11}},
			  {name: secret-a-license, secret: {secretName: a-license}},
			  {name: secret-token, secret: {secretName: token}},
			  {name: secret-c72c4c4697, secret: {secretName: z.license}},
			  {name: model, persistentVolumeClaim: {claimName: reco-models}},
			  {name: model-credentials, secret: {secretName: models}},
			  {name: warm-up, downwardAPI: {items: [{path: body, fieldRef: {fieldPath: "metadata.annotations['capstan.dev/warm-up-body']"}}]}}]`,
		},
		"Mounts": {
			"everything read-only, and no credentials of the model", rich,
			[]string{"spec", "containers", "volumeMounts"},
			`[{name: config, mountPath: /etc/algorithm, readOnly: true},
			  {name: secret-token, mountPath: /etc/secrets/token, readOnly: true},
			  {name: secret-c72c4c4697, mountPath: /etc/secrets/z.license, readOnly: true},
			  {name: model, mountPath: /models, subPath: KEY, readOnly: true},
			  {name: secret-a-license, mountPath: /licenses, readOnly: true}]`,
		},
		"MountsElsewhere": {
			"each volume of Capstan, or a part of it, is where the spec says, and the name of a Secret is its own",
			"{image: x, config: {a: b}, secrets: [{name: z.license, rotate: Rolling}], model: {uri: pvc://m/reco}, " +
				`volumeMounts: [{name: config, mountPath: /c/a, subPath: a}, {name: secret-z.license, mountPath: /s}, {name: model, mountPath: /m, subPath: "7"}, {name: model, mountPath: /n}]}`,
			[]string{"spec", "containers", "volumeMounts"},
			`[{name: config, mountPath: /c/a, subPath: a, readOnly: true},
			  {name: secret-c72c4c4697, mountPath: /s, readOnly: true},
			  {name: model, mountPath: /m, subPath: reco/7, readOnly: true},
			  {name: model, mountPath: /n, subPath: reco, readOnly: true}]`,
		},
		"Startup": {
			"no less time than asked for", rich,
			[]string{"spec", "containers", "startupProbe"},
			`{httpGet: {port: http, path: "/healthz?deep=1", scheme: HTTP}, timeoutSeconds: 2, periodSeconds: 2, failureThreshold: 451}`,
		},
		"Readiness": {
			"the path decides who gets requests, and a slow node has time to answer", rich,
			[]string{"spec", "containers", "readinessProbe"},
			`{httpGet: {port: http, path: "/healthz?deep=1", scheme: HTTP}, timeoutSeconds: 5, periodSeconds: 5, failureThreshold: 3}`,
		},
		"Liveness": {
			"a busy server is not a dead one", rich,
			[]string{"spec", "containers", "livenessProbe"},
			`{tcpSocket: {port: http}, timeoutSeconds: 5, periodSeconds: 10, failureThreshold: 6}`,
		},
		"ReadinessOfPort": {
			"the same time without a path", "{image: x}",
			[]string{"spec", "containers", "readinessProbe"},
			`{tcpSocket: {port: http}, timeoutSeconds: 5, periodSeconds: 5, failureThreshold: 3}`,
		},
		"UsualDrain": {
			"half a minute beside the time in which callers still come", "{image: x}", []string{"spec", "terminationGracePeriodSeconds"}, "35",
		},
		"LongDrain": {
			"requests that began may end", rich, []string{"spec", "terminationGracePeriodSeconds"}, "125",
		},
		"Tolerations": {
			"the taint of the part and of the whole", rich,
			[]string{"spec", "tolerations"},
			"[{key: nvidia.com/mig-1g.10gb, operator: Exists}, {key: nvidia.com/gpu, operator: Exists}]",
		},
		"Products": {
			"only nodes whose GPU will do", rich,
			[]string{"spec", "affinity"},
			`{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [
			  {key: nvidia.com/gpu.product, operator: In, values: [A100, H100]}]}]}}}`,
		},
		"AnyProduct": {
			"any GPU will do", "{image: x, resources: {gpu: nvidia.com/gpu}}", []string{"spec", "affinity"}, "null",
		},
		"ProductsOfAMD": {
			"AMD has a label of its own", "{image: x, resources: {gpu: amd.com/gpu, gpuProducts: [MI300X]}}",
			[]string{"spec", "affinity"},
			`{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [
			  {key: amd.com/gpu.product-name, operator: In, values: [MI300X]}]}]}}}`,
		},
		"ProductsOfAnother": {
			"other vendors are taken to do as the first", "{image: x, resources: {gpu: gpu.intel.com/i915, gpuProducts: [Max]}}",
			[]string{"spec", "affinity"},
			`{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [
			  {key: gpu.intel.com/gpu.product, operator: In, values: [Max]}]}]}}}`,
		},
		"NoCompanion": {
			"who asks for nothing of it has none", "{image: x}", []string{"spec", "initContainers"}, "null",
		},
		"Security": {
			"a claim belongs to those who fill it", rich,
			[]string{"spec", "securityContext"},
			`{runAsNonRoot: true, runAsUser: 1000, fsGroup: 65532, fsGroupChangePolicy: OnRootMismatch, seccompProfile: {type: RuntimeDefault}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := gathered(t, newWorld(t, tc.spec).platform())
			if len(s.Spec.Secrets) > 0 {
				s.Fingerprints = map[string]string{"a-license": "1", "z.license": "2"}
			}
			var got any = rendered(t, s)
			for _, k := range tc.path {
				if list, ok := got.([]any); ok {
					got = list[0]
				}
				got = got.(map[string]any)[k]
			}
			want := tc.want
			if s.Model != nil {
				want = strings.ReplaceAll(want, "KEY", s.Model.Key)
			}
			if diff := cmp.Diff(parse(t, "x: "+want)["x"], got); diff != "" {
				t.Errorf("%s\n%v: -want, +got:\n%s", tc.reason, tc.path, diff)
			}
		})
	}
}

func TestWarmUp(t *testing.T) {
	same := `
image: registry.example.org/companion:v0.1.0
name: warm-up
restartPolicy: Always
readinessProbe: {httpGet: {port: 9901, path: /ready, scheme: HTTP}, timeoutSeconds: 10, periodSeconds: 2, failureThreshold: 1}
resources: {requests: {cpu: 10m, memory: 32Mi}, limits: {memory: 32Mi}}
terminationMessagePolicy: FallbackToLogsOnError
securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
`
	cases := map[string]struct {
		reason string
		spec   string
		want   string
	}{
		"Get": {
			"requests without a body are asked for by GET", "{image: x, port: 9000, probes: {warmUp: {path: /, requests: 1}}}",
			`args: [warm-up, "--url=http://127.0.0.1:9000/", --requests=1, "--listen=:9901"]`,
		},
		"Post": {
			"a body is read from a file, where no shell and no Kubernetes touches it",
			`{image: x, probes: {warmUp: {path: "/p?a=b", body: '$(A)', contentType: text/plain}}}`,
			`
args: [warm-up, "--url=http://127.0.0.1:8080/p?a=b", --requests=10, "--listen=:9901", --content-type=text/plain, --body-file=/warm-up/body]
volumeMounts: [{name: warm-up, mountPath: /warm-up, readOnly: true}]`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := compose.List(rendered(t, gathered(t, newWorld(t, tc.spec).platform())), "spec", "initContainers")
			if diff := cmp.Diff([]any{parse(t, same+tc.want)}, got); diff != "" {
				t.Errorf("%s\ninitContainers: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSecretsMakeRevisions shows when the pods of a spec are others.
func TestSecretsMakeRevisions(t *testing.T) {
	annotations := func(secrets string, prints map[string]string) map[string]any {
		s := gathered(t, newWorld(t, "{image: x, secrets: "+secrets+"}").platform())
		s.Fingerprints = prints
		return compose.Map(rendered(t, s), "metadata", "annotations")
	}
	one := annotations("[{name: a, rotate: Rolling}, {name: b}]", map[string]string{"a": "1"})
	if same := annotations("[{name: b}, {name: a, rotate: Rolling}]", map[string]string{"a": "1"}); !cmp.Equal(one, same) {
		t.Errorf("the order of Secrets makes a revision: %v and %v", one, same)
	}
	if other := annotations("[{name: a, rotate: Rolling}, {name: b}]", map[string]string{"a": "2"}); cmp.Equal(one, other) {
		t.Errorf("a change of a Secret makes no revision: %v", one)
	}
	if none := annotations("[{name: a}, {name: b}]", nil); none != nil {
		t.Errorf("Secrets whose changes roll nothing out have an annotation: %v", none)
	}
}

// TestRestricted shows that every pod satisfies the Pod Security Standard restricted, as the API server checks it.
func TestRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, spec := range map[string]string{
		"Smallest": "{image: x}",
		"Full":     full,
		"Rich":     rich,
		"Image":    "{image: x, model: {uri: oci://r}}",
		"Volume":   "{image: x, model: {uri: pvc://a, digest: 'sha256:" + strings.Repeat("a", 64) + "/3'}}",
		"Overlay":  overlaid,
		"EmptyDir": "{image: x, model: {uri: s3://models/b}, probes: {warmUp: {path: /}}}",
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(rendered(t, gathered(t, newWorld(t, spec).platform())))
			if err != nil {
				t.Fatal(err)
			}
			var template corev1.PodTemplateSpec
			if err := json.Unmarshal(raw, &template); err != nil {
				t.Fatal(err)
			}
			results := evaluator.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &template.ObjectMeta, &template.Spec)
			if r := policy.AggregateCheckResults(results); !r.Allowed {
				t.Errorf("the pod is not restricted: %s", r.ForbiddenDetail())
			}

			// What the standard wants of each container must not come from the check having looked at none.
			template.Spec.Containers[0].SecurityContext = nil
			results = evaluator.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &template.ObjectMeta, &template.Spec)
			if policy.AggregateCheckResults(results).Allowed {
				t.Error("a container without a security context counts as restricted")
			}
		})
	}
}
