// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// overlaid spec: every part of spec.pod.
const overlaid = `
image: x
probes: {warmUp: {path: /}}
pod:
  initContainers:
  - {name: features, image: f, command: [/fetch], volumeMounts: [{name: features, mountPath: /out}]}
  containers:
  - name: tokens
    image: t
    ports: [{name: admin, containerPort: 9000}]
    resources: {limits: {memory: 64Mi}}
    securityContext: {runAsUser: 1000, readOnlyRootFilesystem: true}
    readinessProbe: {httpGet: {path: /ready, port: admin}}
  volumes:
  - {name: features, emptyDir: {}}
  - {name: calendar, configMap: {name: calendar}}
volumeMounts:
- {name: features, mountPath: /features, readOnly: true}
- {name: calendar, mountPath: /calendar, subPath: "2026"}
podMetadata:
  labels: {example.org/team: reco}
  annotations: {example.org/contact: reco-team}
`

func TestOverlay(t *testing.T) {
	cases := map[string]struct {
		reason string
		path   []string
		want   string
	}{
		"Containers": {
			"those of the spec start first, restricted, with a request; a limit is also a request",
			[]string{"spec", "initContainers"},
			`
- name: features
  image: f
  command: [/fetch]
  volumeMounts: [{name: features, mountPath: /out}]
  resources: {requests: {cpu: 10m, memory: 32Mi}}
  securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
  terminationMessagePolicy: FallbackToLogsOnError
- name: tokens
  image: t
  restartPolicy: Always
  ports: [{name: admin, containerPort: 9000}]
  resources: {limits: {memory: 64Mi}, requests: {cpu: 10m}}
  securityContext: {runAsUser: 1000, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
  readinessProbe: {httpGet: {path: /ready, port: admin}}
  terminationMessagePolicy: FallbackToLogsOnError
`,
		},
		"Volumes": {
			"as they are written", []string{"spec", "volumes"}, `[{name: features, emptyDir: {}}, {name: calendar, configMap: {name: calendar}}]`,
		},
		"Metadata": {
			"beside what Capstan sets",
			[]string{"metadata"},
			`{labels: {app.kubernetes.io/name: reco, app.kubernetes.io/managed-by: capstan, capstan.dev/algorithm: reco, example.org/team: reco},
			  annotations: {example.org/contact: reco-team}}`,
		},
	}
	template := rendered(t, gathered(t, newWorld(t, overlaid).platform()))
	own := compose.List(template, "spec", "initContainers")
	if last := own[len(own)-1].(map[string]any)["name"]; last != "warm-up" || len(own) != 3 {
		t.Errorf("the companion is the last of %d init containers: got %v", len(own), last)
	}
	template["spec"].(map[string]any)["initContainers"] = own[:2]
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got any = template
			for _, k := range tc.path {
				got = got.(map[string]any)[k]
			}
			if diff := cmp.Diff(parse(t, "x:\n  "+strings.ReplaceAll(tc.want, "\n", "\n  "))["x"], got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	mounts := compose.Map(compose.List(template, "spec", "containers")[0].(map[string]any))["volumeMounts"]
	want := parse(t, `{x: [{name: features, mountPath: /features, readOnly: true}, {name: calendar, mountPath: /calendar, subPath: "2026"}]}`)["x"]
	if diff := cmp.Diff(want, mounts); diff != "" {
		t.Errorf("mounts of the container that serves: -want, +got:\n%s", diff)
	}
}

// TestOverlayRefused shows what spec.pod cannot have, and that what runs stays.
func TestOverlayRefused(t *testing.T) {
	sidecar := func(text string) string { return "{image: x, pod: {containers: [{name: s, image: i, " + text + "}]}}" }
	volume := func(text string) string { return "{image: x, pod: {volumes: [{name: v, " + text + "}]}}" }
	const restricted = "Pod Security Standard restricted"
	cases := map[string]struct {
		reason string
		spec   string
		words  []string
	}{
		"Privileged":   {"the schema has a rule", sidecar("securityContext: {privileged: true}"), []string{"spec.pod.containers[0].securityContext.privileged", "true", "must be false"}},
		"Escalation":   {"the schema has a rule", sidecar("securityContext: {allowPrivilegeEscalation: true}"), []string{"securityContext.allowPrivilegeEscalation", "must be false"}},
		"Root":         {"the schema has a rule", sidecar("securityContext: {runAsUser: 0}"), []string{"securityContext.runAsUser", "0", "excludes root"}},
		"MayBeRoot":    {"the schema has a rule", sidecar("securityContext: {runAsNonRoot: false}"), []string{"securityContext.runAsNonRoot", "must be true"}},
		"Capabilities": {"the standard allows NET_BIND_SERVICE only", sidecar("securityContext: {capabilities: {add: [NET_ADMIN]}}"), []string{"spec.pod.containers[0]", `"s"`, restricted, "NET_ADMIN"}},
		"DropsSome":    {"the standard wants all of them dropped", sidecar("securityContext: {capabilities: {drop: [KILL]}}"), []string{"spec.pod.containers[0]", restricted, `capabilities.drop=["ALL"]`}},
		"HostPort":     {"ports of the node", sidecar("ports: [{containerPort: 9000, hostPort: 9000}]"), []string{"spec.pod.containers[0]", restricted, "hostPort"}},
		"Seccomp":      {"no profile", sidecar("securityContext: {seccompProfile: {type: Unconfined}}"), []string{"spec.pod.containers[0]", restricted, "seccomp"}},
		"ProcMount":    {"the node's processes", sidecar("securityContext: {procMount: Unmasked}"), []string{"spec.pod.containers[0]", restricted, "procMount"}},
		"AppArmor":     {"a profile by annotation", "{image: x, podMetadata: {annotations: {container.apparmor.security.beta.kubernetes.io/algorithm: unconfined}}}", []string{"spec.podMetadata.annotations", restricted, "unconfined"}},
		"HostPath":     {"folders of the node", volume("hostPath: {path: /}"), []string{"spec.pod.volumes[0].hostPath", `"v"`, "the platform allows only", "restricted"}},
		"NotAllowed":   {"the platform decides", volume("csi: {driver: d}"), []string{"spec.pod.volumes[0].csi", "configMap, downwardAPI, emptyDir", "algorithm.pod.volumes"}},
		"NoKind":       {"what would it be", "{image: x, pod: {volumes: [{name: v}]}}", []string{"spec.pod.volumes[0]", "0 kinds", "exactly one"}},
		"TwoKinds":     {"which one is it", volume("emptyDir: {}, secret: {secretName: a}"), []string{"spec.pod.volumes[0]", "emptyDir, secret", "exactly one"}},
		"Token": {
			"Capstan's account has no token", volume("projected: {sources: [{serviceAccountToken: {path: token}}]}"),
			[]string{"spec.pod.volumes[0].projected.sources[0].serviceAccountToken", "spec.pod.serviceAccountName"},
		},
		"VolumeName":      {"Capstan uses it", "{image: x, pod: {volumes: [{name: model, emptyDir: {}}]}}", []string{"spec.pod.volumes[0].name", `"model"`, "Capstan uses"}},
		"SecretName":      {"Capstan uses it", "{image: x, pod: {volumes: [{name: secret-a, emptyDir: {}}]}}", []string{"spec.pod.volumes[0].name", "Capstan uses"}},
		"ContainerName":   {"Capstan uses it", "{image: x, pod: {containers: [{name: algorithm, image: i}]}}", []string{"spec.pod.containers[0].name", "Capstan uses"}},
		"NameInBoth":      {"a pod has each name once", "{image: x, pod: {initContainers: [{name: s, image: i}], containers: [{name: s, image: i}]}}", []string{"spec.pod.containers[0].name", "spec.pod.initContainers[0]", "another name"}},
		"NoImage":         {"nothing to run", "{image: x, pod: {containers: [{name: s}]}}", []string{"spec.pod.containers[0].image", "missing"}},
		"UnknownField":    {"it would have no effect", sidecar("comand: [a]"), []string{"spec.pod.containers[0]", `unknown field "comand"`, "core/v1"}},
		"UnknownDeep":     {"it would have no effect", sidecar("securityContext: {readOnly: true}"), []string{"spec.pod.containers[0]", `"securityContext.readOnly"`}},
		"UnknownInVolume": {"it would have no effect", volume("emptyDir: {size: 1Gi}"), []string{"spec.pod.volumes[0]", `"emptyDir.size"`}},
		"WrongType":       {"no container can have it", sidecar("command: 5"), []string{"spec", "pod.containers.command"}},
		"PortOfServer":    {"one of both could not listen", sidecar("ports: [{containerPort: 8080}]"), []string{"spec.pod.containers[0].ports[0].containerPort", "8080", "spec.port"}},
		"PortOfWarmUp": {
			"one of both could not listen", "{image: x, probes: {warmUp: {path: /}}, pod: {containers: [{name: s, image: i, ports: [{containerPort: 9901}]}]}}",
			[]string{"spec.pod.containers[0].ports[0].containerPort", "9901", "spec.probes.warmUp"},
		},
		"PortName":      {"Services would reach it", sidecar("ports: [{name: http, containerPort: 1}]"), []string{"spec.pod.containers[0].ports[0].name", `"http"`, "another name"}},
		"NoVolume":      {"nothing to mount", sidecar("volumeMounts: [{name: config, mountPath: /a}]"), []string{"spec.pod.containers[0].volumeMounts[0].name", `"config"`, "spec.pod.volumes"}},
		"Propagation":   {"mounts of the node", "{image: x, pod: {volumes: [{name: v, emptyDir: {}}], containers: [{name: s, image: i, volumeMounts: [{name: v, mountPath: /a, mountPropagation: Bidirectional}]}]}}", []string{"volumeMounts[0].mountPropagation", "Bidirectional"}},
		"Devices":       {"a device of the node", sidecar("volumeDevices: [{name: v, devicePath: /dev/x}]"), []string{"spec.pod.containers[0].volumeDevices", "not supported"}},
		"RestartNever":  {"a sidecar keeps running", sidecar("restartPolicy: Never"), []string{"spec.pod.containers[0].restartPolicy", `"Never"`, "Always"}},
		"ProbeOfInit":   {"it ends", "{image: x, pod: {initContainers: [{name: s, image: i, readinessProbe: {tcpSocket: {port: 1}}}]}}", []string{"spec.pod.initContainers[0]", "no probes", "spec.pod.containers"}},
		"MountNoConfig": {"nothing to mount", "{image: x, volumeMounts: [{name: config, mountPath: /a}]}", []string{"spec.volumeMounts[0].name", `"config"`, "where the spec has it"}},
		"MountOneFile":  {"it would stay as it is when the Secret changes", "{image: x, secrets: [{name: a}], volumeMounts: [{name: secret-a, mountPath: /a, subPath: b}]}", []string{"spec.volumeMounts[0].subPath", `"b"`, "spec.secrets[0].rotate"}},
		"MountNothing":  {"nothing to mount", "{image: x, volumeMounts: [{name: v, mountPath: /a}]}", []string{"spec.volumeMounts[0].name", `"v"`, "spec.pod.volumes"}},
		"MountOver": {
			"files would be hidden", "{image: x, config: {a: b}, pod: {volumes: [{name: v, emptyDir: {}}]}, volumeMounts: [{name: v, mountPath: /etc}]}",
			[]string{"spec.volumeMounts[0].mountPath", `"/etc"`, "contains /etc/algorithm", "spec.config"},
		},
		"Label":      {"Services select by it", "{image: x, podMetadata: {labels: {capstan.dev/slot: b}}}", []string{"spec.podMetadata.labels", "capstan.dev/slot", "select pods"}},
		"Annotation": {"Capstan sets it", "{image: x, podMetadata: {annotations: {capstan.dev/revision: a}}}", []string{"spec.podMetadata.annotations", "capstan.dev/"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := serving(t, "{image: x}")
			w.edit(tc.spec)
			p := w.plan()
			c := condition(p, v1alpha1.TypeAccepted)
			if c.Status != "False" || c.Reason != v1alpha1.ReasonInvalidSpec {
				t.Errorf("%s: Accepted: got %s %s, want False %s", tc.reason, c.Status, c.Reason, v1alpha1.ReasonInvalidSpec)
			}
			for _, word := range tc.words {
				if !strings.Contains(c.Message, word) {
					t.Errorf("%s: message %q lacks %q", tc.reason, c.Message, word)
				}
			}
			before := w.request.Observed
			w.compose(p)
			if diff := cmp.Diff(before, w.request.Observed); diff != "" {
				t.Errorf("a bad edit changes what runs: -before, +after:\n%s", diff)
			}
		})
	}
}

func TestOverlayAccepted(t *testing.T) {
	for name, spec := range map[string]string{
		"Whole":         overlaid,
		"Empty":         "{image: x, pod: {}}",
		"OwnToken":      "{image: x, pod: {serviceAccountName: own, volumes: [{name: t, projected: {sources: [{serviceAccountToken: {path: t, audience: a}}]}}]}}",
		"ExporterPort":  "{image: x, metrics: {port: 9100}, pod: {containers: [{name: exporter, image: e, ports: [{containerPort: 9100}]}]}}",
		"SidecarBefore": "{image: x, pod: {initContainers: [{name: proxy, image: p, restartPolicy: Always, startupProbe: {tcpSocket: {port: 1}}}, {name: f, image: f}]}}",
		"BindLow":       "{image: x, pod: {containers: [{name: s, image: i, securityContext: {capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}}}]}}",
	} {
		t.Run(name, func(t *testing.T) {
			if c := condition(newWorld(t, spec).platform().plan(), v1alpha1.TypeAccepted); c.Status != "True" {
				t.Errorf("Accepted: %s %q", c.Status, c.Message)
			}
		})
	}
}

// TestOverlayMakesRevisions shows which edits of spec.pod start other pods.
func TestOverlayMakesRevisions(t *testing.T) {
	const one = "{image: x, pod: {containers: [{name: s, image: i, resources: {limits: {cpu: 1}}}], volumes: [{name: v, emptyDir: {}}]}}"
	cases := map[string]struct {
		reason     string
		from, to   string
		isRevision bool
	}{
		"Added":    {"a sidecar reaches the pods", "{image: x}", one, true},
		"Field":    {"also one that the schema does not name", one, strings.Replace(one, "image: i,", "image: i, args: [a],", 1), true},
		"Volume":   {"also one that the schema does not name", one, strings.Replace(one, "emptyDir: {}", "secret: {secretName: a}", 1), true},
		"Label":    {"labels are part of the pods", "{image: x}", "{image: x, podMetadata: {labels: {a: b}}}", true},
		"Empty":    {"an empty block is none", "{image: x}", "{image: x, pod: {containers: []}, podMetadata: {labels: {}}}", false},
		"Quantity": {"another way to write the same is no other pod", one, strings.Replace(one, "cpu: 1", "cpu: 1000m", 1), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := serving(t, tc.from)
			w.edit(tc.to)
			p := w.plan()
			if c := condition(p, v1alpha1.TypeAccepted); c.Status != "True" {
				t.Fatalf("Accepted: %s %q", c.Status, c.Message)
			}
			if _, got := p.Objects[names.Deployment(names.SlotB)]; got != tc.isRevision {
				t.Errorf("%s: another revision: got %t, want %t", tc.reason, got, tc.isRevision)
			}
		})
	}
}

// TestOverlaySettings shows that a kind of volume that the platform no longer allows costs nothing that runs.
func TestOverlaySettings(t *testing.T) {
	w := serving(t, "{image: x, pod: {volumes: [{name: v, emptyDir: {}}]}}")
	w.request.Settings.Algorithm.Pod = inputv1alpha1.AlgorithmPodSettings{}
	p := w.plan()
	if c := condition(p, v1alpha1.TypeAccepted); c.Status != "False" || !strings.Contains(c.Message, "volumes of no kind") {
		t.Errorf("Accepted: %s %q", c.Status, c.Message)
	}
	if want, got := slices.Sorted(maps.Keys(w.request.Observed)), slices.Sorted(maps.Keys(p.Objects)); !cmp.Equal(want, got) {
		t.Errorf("objects: -before, +after:\n%s", cmp.Diff(want, got))
	}
}
