// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

func TestObjects(t *testing.T) {
	basic := []string{"analysis", "deployment-a", "networkpolicy", "service", "serviceaccount"}
	cases := map[string]struct {
		reason string
		world  *world
		want   []string
	}{
		"Smallest":   {"an image is enough", newWorld(t, "{image: x}"), basic},
		"Stopped":    {"zero replicas keep their address", newWorld(t, "{image: x, replicas: 0}"), basic},
		"Budget":     {"two replicas get a budget", newWorld(t, "{image: x, replicas: 2}"), append(basic, "pdb-a")},
		"OwnAccount": {"an own ServiceAccount is not composed", newWorld(t, "{image: x, pod: {serviceAccountName: own}}"), without(basic, "serviceaccount")},
		"Full":       {"every object", newWorld(t, full), append(basic, "hpa-a", "pdb-a", "config-9a2c1b554f")},
		"OneAtMost": {
			"an autoscaler that never adds a second replica needs no budget",
			newWorld(t, "{image: x, replicas: 5, scaling: {maxReplicas: 1}}"), append(basic, "hpa-a"),
		},
		"NoProvider": {"the Analysis needs its kind", withKind(newWorld(t, "{image: x}"), compose.Unavailable), without(basic, "analysis")},
		"NotTold":    {"as long as Crossplane has not told, it is not asked for", withKind(newWorld(t, "{image: x}"), compose.AvailabilityUnknown), without(basic, "analysis")},
		"NotToldKept": {
			"what exists is kept whatever Crossplane tells",
			withKind(serving(t, "{image: x}"), compose.AvailabilityUnknown), append(basic, "revision-"),
		},
		"UnavailableKept": {
			"what exists is kept whatever Crossplane tells",
			withKind(serving(t, "{image: x}"), compose.Unavailable), append(basic, "revision-"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for resource := range tc.world.plan().Objects {
				if strings.HasPrefix(resource, names.RevisionPrefix) {
					resource = names.RevisionPrefix
				}
				got = append(got, resource)
			}
			slices.Sort(got)
			want := slices.Sorted(slices.Values(tc.want))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\nObjects: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFields looks at the fields that a field of the spec, or a promise of ours, turns into.
func TestFields(t *testing.T) {
	pod := []string{"spec", "template", "spec"}
	cases := map[string]struct {
		reason   string
		spec     string
		resource string
		path     []string
		want     any
	}{
		"Restricted": {
			"pods satisfy the Pod Security Standard restricted", "{image: x}", "deployment-a",
			slices.Concat(pod, []string{"securityContext"}),
			parse(t, "{runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}"),
		},
		"RunAsUser": {
			"an image whose user is root gets another", full, "deployment-a",
			slices.Concat(pod, []string{"securityContext", "runAsUser"}), 65532.0,
		},
		"NoToken": {
			"pods get no token", "{image: x}", "deployment-a",
			slices.Concat(pod, []string{"automountServiceAccountToken"}), false,
		},
		"OwnAccountsToken": {
			"an own ServiceAccount decides about its token", "{image: x, pod: {serviceAccountName: own}}", "deployment-a",
			slices.Concat(pod, []string{"automountServiceAccountToken"}), nil,
		},
		"Tolerations": {
			"the taint of the GPU is tolerated", full, "deployment-a",
			slices.Concat(pod, []string{"tolerations"}),
			parse(t, `{x: [{key: spot, operator: Equal, value: "true", effect: NoExecute, tolerationSeconds: 60}, {key: nvidia.com/gpu, operator: Exists}]}`)["x"],
		},
		"NodeSelector": {
			"nodes are narrowed down", full, "deployment-a",
			slices.Concat(pod, []string{"nodeSelector"}),
			map[string]any{"pool": "gpu"},
		},
		"RuntimeClass":  {"the runtime is chosen", full, "deployment-a", slices.Concat(pod, []string{"runtimeClassName"}), "nvidia"},
		"PriorityClass": {"the priority is set", full, "deployment-a", slices.Concat(pod, []string{"priorityClassName"}), "production"},
		"PullSecrets": {
			"private registries are opened", full, "deployment-a",
			slices.Concat(pod, []string{"imagePullSecrets"}),
			[]any{map[string]any{"name": "registry-login"}},
		},
		"Volumes": {
			"files and shared memory", full, "deployment-a",
			slices.Concat(pod, []string{"volumes"}),
			parse(t, `{x: [{name: config, configMap: {name: reco-config-9a2c1b554f}}, {name: shared-memory, emptyDir: {medium: Memory, sizeLimit: 2Gi}}]}`)["x"],
		},
		"Spread": {
			"zones as strictly as asked, nodes when there is room", full, "deployment-a",
			slices.Concat(pod, []string{"topologySpreadConstraints"}), parse(t, `{x: [
			  {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: Honor,
			   labelSelector: {matchLabels: {capstan.dev/algorithm: reco}}, matchLabelKeys: [pod-template-hash]},
			  {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, nodeTaintsPolicy: Honor,
			   labelSelector: {matchLabels: {capstan.dev/algorithm: reco}}, matchLabelKeys: [pod-template-hash]}]}`)["x"],
		},
		"Strategy": {
			"an update never goes below the asked number", "{image: x}", "deployment-a",
			[]string{"spec", "strategy"},
			parse(t, "{type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 25%}}"),
		},
		"Selector": {
			"the slot's pods and no others", "{image: x}", "deployment-a",
			[]string{"spec", "selector", "matchLabels"},
			parse(t, "{capstan.dev/algorithm: reco, capstan.dev/slot: a}"),
		},
		"PodLabels": {
			"pods carry every label", "{image: x}", "deployment-a",
			[]string{"spec", "template", "metadata", "labels"},
			parse(t, "{app.kubernetes.io/name: reco, app.kubernetes.io/managed-by: capstan, capstan.dev/algorithm: reco, capstan.dev/slot: a}"),
		},
		"ConfigMap": {
			"files cannot be changed under running pods", full, "config-9a2c1b554f", nil,
			parse(t, `{apiVersion: v1, kind: ConfigMap, immutable: true, data: {reco.yaml: "threshold: 0.7"}, metadata: {name: reco-config-9a2c1b554f, namespace: shop,
			  labels: {app.kubernetes.io/name: reco, app.kubernetes.io/managed-by: capstan, capstan.dev/algorithm: reco}}}`),
		},
		"Service": {
			"callers reach the named port of the slot", "{image: x}", "service",
			[]string{"spec"},
			parse(t, `{selector: {capstan.dev/algorithm: reco, capstan.dev/slot: a}, ports: [{name: http, protocol: TCP, port: 80, targetPort: http}]}`),
		},
		"NetworkPolicy": {
			"pods of the namespace reach the one port", "{image: x}", "networkpolicy",
			[]string{"spec"},
			parse(t, `{podSelector: {matchLabels: {capstan.dev/algorithm: reco}}, policyTypes: [Ingress],
			  ingress: [{from: [{podSelector: {}}], ports: [{port: http, protocol: TCP}]}]}`),
		},
		"ServiceAccount": {
			"an account without a token", "{image: x}", "serviceaccount", []string{"automountServiceAccountToken"}, false,
		},
		"Budget": {
			"a share may be missing", full, "pdb-a",
			[]string{"spec"},
			parse(t, `{maxUnavailable: 25%, unhealthyPodEvictionPolicy: AlwaysAllow, selector: {matchLabels: {capstan.dev/algorithm: reco, capstan.dev/slot: a}}}`),
		},
		"Autoscaler": {
			"CPU near 70 %, and no haste to shrink", full, "hpa-a",
			[]string{"spec"},
			parse(t, `{scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: reco-a}, minReplicas: 2, maxReplicas: 10,
			  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}}],
			  behavior: {
			    scaleUp: {stabilizationWindowSeconds: 0, selectPolicy: Max, policies: [{type: Percent, value: 100, periodSeconds: 60}, {type: Pods, value: 4, periodSeconds: 60}]},
			    scaleDown: {stabilizationWindowSeconds: 300, selectPolicy: Max, policies: [{type: Percent, value: 10, periodSeconds: 60}, {type: Pods, value: 1, periodSeconds: 60}]}}}`),
		},
		"Analysis": {
			"the observer is told whose pods to look at", "{image: x}", "analysis",
			[]string{"spec"},
			parse(t, `{forProvider: {algorithm: reco, container: algorithm}}`),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got any = map[string]any(object(t, newWorld(t, tc.spec).plan(), tc.resource))
			for _, k := range tc.path {
				got = got.(map[string]any)[k]
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n%s %v: -want, +got:\n%s", tc.reason, tc.resource, tc.path, diff)
			}
		})
	}
}

func TestContainer(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		want   string
	}{
		"Smallest": {
			reason: "defaults of the platform",
			spec:   "{image: x}",
			want: `
name: algorithm
image: x
ports: [{name: http, containerPort: 8080, protocol: TCP}]
resources: {requests: {cpu: 250m, memory: 256Mi}, limits: {memory: 256Mi}}
`,
		},
		"Full": {
			reason: "shared memory counts as memory, and GPUs are limited as they are requested",
			spec:   full,
			want: `
name: algorithm
image: registry.example.org/algo/reco:2.1.4
command: [/server]
args: [--threads=4]
env:
- {name: LOG_LEVEL, value: info}
- {name: EMPTY}
- {name: TOKEN, valueFrom: {secretKeyRef: {name: reco, key: token}}}
- {name: MODE, valueFrom: {configMapKeyRef: {name: reco, key: mode}}}
ports: [{name: http, containerPort: 9000, protocol: TCP}]
resources: {requests: {cpu: 500m, memory: 3Gi, nvidia.com/gpu: "2"}, limits: {memory: 3Gi, nvidia.com/gpu: "2"}}
volumeMounts:
- {name: config, mountPath: /etc/algorithm, readOnly: true}
- {name: shared-memory, mountPath: /dev/shm}
`,
		},
		"OneGPU": {
			reason: "a GPU without a number is one, and beside one the usual memory is no limit",
			spec:   "{image: x, resources: {gpu: amd.com/gpu}}",
			want: `
name: algorithm
image: x
ports: [{name: http, containerPort: 8080, protocol: TCP}]
resources: {requests: {cpu: "1", memory: 4Gi, amd.com/gpu: "1"}, limits: {amd.com/gpu: "1"}}
`,
		},
		"GPUWithMemory": {
			reason: "memory that is written is a limit, and shared memory counts as memory",
			spec:   "{image: x, resources: {gpu: amd.com/gpu, memory: 8Gi, sharedMemory: 1Gi}}",
			want: `
name: algorithm
image: x
ports: [{name: http, containerPort: 8080, protocol: TCP}]
resources: {requests: {cpu: "1", memory: 9Gi, amd.com/gpu: "1"}, limits: {memory: 9Gi, amd.com/gpu: "1"}}
volumeMounts: [{name: shared-memory, mountPath: /dev/shm}]
`,
		},
	}
	same := parse(t, `
securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
lifecycle: {preStop: {sleep: {seconds: 5}}}
startupProbe: {tcpSocket: {port: http}, timeoutSeconds: 2, periodSeconds: 2, failureThreshold: 300}
terminationMessagePolicy: FallbackToLogsOnError
readinessProbe: {tcpSocket: {port: http}, timeoutSeconds: 5, periodSeconds: 5, failureThreshold: 3}
livenessProbe: {tcpSocket: {port: http}, timeoutSeconds: 5, periodSeconds: 10, failureThreshold: 6}
`)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := parse(t, tc.want)
			maps.Copy(want, same)
			d := object(t, newWorld(t, tc.spec).plan(), names.Deployment(names.SlotA))
			got := compose.List(d, "spec", "template", "spec", "containers")
			if diff := cmp.Diff([]any{want}, got); diff != "" {
				t.Errorf("%s\ncontainers: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 62)
	names := map[string]string{}
	for _, name := range []string{"reco", long + "a", long + "b"} {
		for resource := range newWorld(t, full).named(name).plan().Objects {
			o := object(t, newWorld(t, full).named(name).plan(), resource)
			key := o["kind"].(string) + "/" + compose.Text(o, "metadata", "name")
			if len(compose.Text(o, "metadata", "name")) > 63 {
				t.Errorf("%s is longer than 63 characters", key)
			}
			if other, ok := names[key]; ok {
				t.Errorf("%s belongs to Algorithm %q and %q", key, other, name)
			}
			names[key] = name
		}
	}
	for _, key := range []string{
		"Deployment/reco-a", "HorizontalPodAutoscaler/reco-a", "PodDisruptionBudget/reco-a", "Service/reco", "NetworkPolicy/reco",
		"ServiceAccount/reco", "Analysis/reco", "ConfigMap/reco-config-9a2c1b554f",
	} {
		if names[key] != "reco" {
			t.Errorf("there is no %s", key)
		}
	}
}

func TestNameless(t *testing.T) {
	w := newWorld(t, "{image: x}").named("")
	if p, err := Plan(w.request); err == nil {
		t.Errorf("a composite resource without a name: got plan %v, want an error", p)
	}
}

func TestFixPoint(t *testing.T) {
	for name, spec := range map[string]string{"Smallest": "{image: x}", "Full": full} {
		t.Run(name, func(t *testing.T) {
			w := serving(t, spec)
			before := w.plan()
			w.compose(before)
			after := w.plan()
			if diff := cmp.Diff(decoded(t, before), decoded(t, after)); diff != "" {
				t.Errorf("a plan that is applied changes: -before, +after:\n%s", diff)
			}
			for resource, o := range w.request.Observed {
				kept, want := composetest.Object(compose.Keep(o)), object(t, after, resource)
				delete(want["metadata"].(map[string]any), "namespace")
				if diff := cmp.Diff(want, kept); diff != "" {
					t.Errorf("%s is not kept as it was applied: -want, +got:\n%s", resource, diff)
				}
			}
			if after.TTL != 30*time.Minute || !after.Ready {
				t.Errorf("at rest: ready %t, TTL %s", after.Ready, after.TTL)
			}
		})
	}
}

// decoded plan, to be compared.
func decoded(tb testing.TB, p *compose.Plan) map[string]any {
	tb.Helper()
	o, err := composetest.Decode(p)
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

func without(list []string, item string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == item })
}

func withKind(w *world, a compose.Availability) *world {
	w.request.Kinds = map[schema.GroupVersionKind]compose.Availability{observev1alpha1.AnalysisGroupVersionKind: a}
	return w
}

func statusOf(p *compose.Plan) v1alpha1.AlgorithmStatus {
	raw, err := json.Marshal(p.Status)
	if err != nil {
		panic(err)
	}
	var st v1alpha1.AlgorithmStatus
	if err := json.Unmarshal(raw, &st); err != nil {
		panic(err)
	}
	return st
}
