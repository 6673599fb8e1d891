// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"sigs.k8s.io/yaml"
)

const algorithmXRD = "apis/algorithm/definition.yaml"

// An edit changes an object that is valid as it is.
type edit func(object map[string]any)

// smallest is the smallest useful Algorithm.
func smallest(edits ...edit) map[string]any {
	object := map[string]any{
		"apiVersion": "capstan.dev/v1alpha1",
		"kind":       "Algorithm",
		"metadata":   map[string]any{"name": "reco", "namespace": "shop"},
		"spec":       map[string]any{"image": "registry.example.org/algo/reco:2.1.4"},
	}
	for _, e := range edits {
		e(object)
	}
	return object
}

// name sets metadata.name.
func name(name string) edit {
	return func(object map[string]any) { object["metadata"].(map[string]any)["name"] = name }
}

// spec merges YAML into the spec, one level deep.
func spec(text string) edit {
	return func(object map[string]any) {
		values := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &values); err != nil {
			panic(fmt.Sprintf("bad YAML in a test: %v", err))
		}
		maps.Copy(object["spec"].(map[string]any), whole(values).(map[string]any))
	}
}

// config sets spec.config to files of the given sizes.
func config(sizes ...int) edit {
	return func(object map[string]any) {
		files := map[string]any{}
		for i, size := range sizes {
			files[fmt.Sprintf("file-%d", i)] = strings.Repeat("x", size)
		}
		object["spec"].(map[string]any)["config"] = files
	}
}

// whole turns float64 without a fraction to int64, as the API server's decoder does.
func whole(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = whole(v[k])
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return v
}

func TestAlgorithmAccepted(t *testing.T) {
	a := newAdmission(t, readXRD(t, algorithmXRD))
	cases := map[string]struct {
		reason string
		object map[string]any
	}{
		"Smallest": {
			reason: "An image is enough.",
			object: smallest(),
		},
		"DesignToday": {
			reason: "The short object that people write first stays valid.",
			object: smallest(name("recommendation-engine"), spec(`
replicas: 3
resources: {gpu: nvidia.com/gpu, gpuCount: 2}
scaling:   {minReplicas: 1, maxReplicas: 10, targetLatencyMs: 50}
lifecycle: {canaryWeight: 20, successThreshold: 0.99, rollbackOnDrift: true}`)),
		},
		"ZeroReplicas":       {reason: "Zero stops an Algorithm.", object: smallest(spec(`replicas: 0`))},
		"LongestName":        {reason: "A Service may have 63 characters.", object: smallest(name(strings.Repeat("a", 63)))},
		"OneLetter":          {reason: "A name may be one letter.", object: smallest(name("a"))},
		"GPUAlone":           {reason: "One GPU is the default.", object: smallest(spec(`resources: {gpu: nvidia.com/gpu}`))},
		"WholeCPU":           {reason: "A quantity may be a number.", object: smallest(spec(`resources: {cpu: 2, memory: 1073741824}`))},
		"FractionOfCPU":      {reason: "A quantity may be a string.", object: smallest(spec(`resources: {cpu: 500m, memory: 1.5Gi}`))},
		"DecimalCPU":         {reason: "A quantity may be a decimal in quotes.", object: smallest(spec(`resources: {cpu: "0.5"}`))},
		"SharedMemory":       {reason: "Training frameworks need it.", object: smallest(spec(`resources: {sharedMemory: 2Gi}`))},
		"MinIsZero":          {reason: "An idle Algorithm may sleep.", object: smallest(spec(`scaling: {minReplicas: 0, maxReplicas: 4}`))},
		"SleepsSoon":         {reason: "And sooner than usual.", object: smallest(spec(`scaling: {minReplicas: 0, maxReplicas: 4, idleAfterSeconds: 60}`))},
		"MinIsMax":           {reason: "A fixed size is a size.", object: smallest(spec(`scaling: {minReplicas: 4, maxReplicas: 4}`))},
		"MaxUnavailableOne":  {reason: "A number is taken.", object: smallest(spec(`availability: {maxUnavailable: 1}`))},
		"MaxUnavailableHalf": {reason: "A share is taken.", object: smallest(spec(`availability: {maxUnavailable: "50%"}`))},
		"MaxUnavailableAll":  {reason: "All may be missing when one says so.", object: smallest(spec(`availability: {maxUnavailable: "100%"}`))},
		"LargestConfig":      {reason: "The bound itself is within bounds.", object: smallest(config(786432))},
		"ManyFiles":          {reason: "The bound itself is within bounds.", object: smallest(config(make([]int, 64)...))},
		"UnicodeValue":       {reason: "Values are text.", object: smallest(spec(`env: [{name: GREETING, value: "grüß göttin 🦀"}]`))},
		"UnicodeConfig":      {reason: "Files are text.", object: smallest(spec(`config: {a.txt: "läuft"}`))},
		"EmptyValue":         {reason: "A variable may be empty.", object: smallest(spec(`env: [{name: EMPTY}]`))},
		"HiddenFile":         {reason: "One dot is fine.", object: smallest(spec(`config: {.env: "A=1"}`))},
		"TolerateEverything": {reason: "Kubernetes knows this form.", object: smallest(spec(`pod: {tolerations: [{operator: Exists}]}`))},
		"EmptyLabelValue":    {reason: "Labels may be empty.", object: smallest(spec(`pod: {nodeSelector: {node-role.kubernetes.io/gpu: ""}}`))},
		"NullIsAbsent":       {reason: "Templates often write null.", object: smallest(spec(`{resources: null, replicas: null}`))},
		"ImageByDigest":      {reason: "A digest is best.", object: smallest(spec(`image: "r.example.org:5000/a/b@sha256:` + strings.Repeat("0", 64) + `"`))},
		"MachineryIsCrossplane": {
			reason: "Crossplane's own fields stay usable.",
			object: smallest(spec(`crossplane: {compositionRef: {name: algorithm}}`)),
		},
	}
	accepted := servingAccepted()
	maps.Copy(accepted, modelAccepted())
	maps.Copy(accepted, sloAccepted())
	maps.Copy(accepted, lifecycleAccepted())
	maps.Copy(accepted, podAccepted())
	for name, object := range accepted {
		cases[name] = struct {
			reason string
			object map[string]any
		}{"What the fields say is possible.", object}
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, errs := a.create(t, tc.object); len(errs) > 0 {
				t.Errorf("\n%s\ncreate(...): want no errors, got:\n%s", tc.reason, strings.Join(errs, "\n"))
			}
		})
	}
}

// TestAlgorithmNullApplied: where spec.rollout had fields of another manager or of an earlier apply, server-side apply of an empty block
// stores null. The API server prunes null from what people send, and not from what the apply results in.
func TestAlgorithmNullApplied(t *testing.T) {
	a := newAdmission(t, readXRD(t, algorithmXRD))
	object := smallest(spec(`{rollout: null, lifecycle: {soak: 1m}}`))
	if errs := validation.ValidateCustomResource(nil, object, a.validator); len(errs) > 0 {
		t.Errorf("nothing is asked of the rollout, got %v", errs)
	}
	if _, errs := a.create(t, object); len(errs) > 0 {
		t.Errorf("nor do the rules refuse it, got %v", errs)
	}
}

// refused is an object, and what the API server has to say against it.
type refused struct {
	reason string
	object map[string]any
	want   []string
}

func TestAlgorithmRefused(t *testing.T) {
	a := newAdmission(t, readXRD(t, algorithmXRD))
	// Messages that several cases share. dns and pattern are those of Kubernetes.
	const (
		dns = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', ` +
			`and must start and end with an alphanumeric character (e.g. 'example.com', regex used for ` +
			`validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
		service = "metadata.name: Invalid value: must be at most 63 lower case letters, digits and '-', start " +
			"with a letter and end with a letter or digit, because the Service of the Algorithm has the " +
			"same name"
		pattern = `in body should match ` +
			`'^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$'`
		cores  = "must be a quantity of at least 1m, for instance 500m"
		bytes  = "must be a quantity of at least 1Mi, for instance 512Mi"
		share  = "must be a number of at least 1, or a share from 1% to 100%"
		object = "must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit " +
			"at both ends"
		fileNames = "spec.config: Invalid value: names of files must be letters, digits, '-', '_' and '.', " +
			"not start with '..', and have at most 253 characters"
		variable  = "must be letters, digits, '_', '-' or '.', and not start with a digit"
		reference = "must be an image reference: letters, digits and any of . _ - / : @ +"
		path      = "must be an absolute path without ':', other than / and /dev/shm"
	)
	cases := map[string]refused{
		"NoSpec": {
			reason: "There is nothing to run.",
			object: smallest(func(o map[string]any) { delete(o, "spec") }),
			want:   []string{"spec: Required value"},
		},
		"NoImage": {
			reason: "There is nothing to run.",
			object: smallest(func(o map[string]any) { o["spec"] = map[string]any{} }),
			want:   []string{"spec.image: Required value"},
		},
		"EmptyImage": {
			reason: "There is nothing to run.",
			object: smallest(spec(`image: ""`)),
			want:   []string{`spec.image: Invalid value: "": ` + reference},
		},
		"SpaceInImage": {
			reason: "No registry could serve it.",
			object: smallest(spec(`image: "reco 2.1"`)),
			want:   []string{`spec.image: Invalid value: "reco 2.1": ` + reference},
		},
		"UnicodeImage": {
			reason: "No registry could serve it.",
			object: smallest(spec(`image: registry.example.org/größe:1`)),
			want:   []string{`spec.image: Invalid value: "registry.example.org/größe:1": ` + reference},
		},
		"LongName": {
			reason: "A Service and labels have to hold the name.",
			object: smallest(name(strings.Repeat("a", 64))),
			want:   []string{"metadata.name: Too long: may not be more than 63 bytes"},
		},
		"DigitFirst": {
			reason: "A Service could not have the name.",
			object: smallest(name("1reco")),
			want:   []string{service},
		},
		"UpperCase": {
			reason: "Kubernetes itself refuses it too.",
			object: smallest(name("Reco")),
			want: []string{
				`metadata.name: Invalid value: "Reco": ` + dns,
				service,
			},
		},
		"Dot": {
			reason: "A Service could not have the name.",
			object: smallest(name("reco.shop")),
			want:   []string{service},
		},
		"DashLast": {
			reason: "Kubernetes itself refuses it too.",
			object: smallest(name("reco-")),
			want: []string{
				`metadata.name: Invalid value: "reco-": ` + dns,
				service,
			},
		},
		"NegativeReplicas": {
			reason: "The bound is named.",
			object: smallest(spec(`replicas: -1`)),
			want:   []string{"spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0"},
		},
		"TooManyReplicas": {
			reason: "The bound is named.",
			object: smallest(spec(`replicas: 1001`)),
			want:   []string{"spec.replicas: Invalid value: 1001: spec.replicas in body should be less than or equal to 1000"},
		},
		"NegativePort": {
			reason: "The bound is named.",
			object: smallest(spec(`port: -80`)),
			want:   []string{"spec.port: Invalid value: -80: spec.port in body should be greater than or equal to 1"},
		},
		"HighPort": {
			reason: "The bound is named.",
			object: smallest(spec(`port: 70000`)),
			want:   []string{"spec.port: Invalid value: 70000: spec.port in body should be less than or equal to 65535"},
		},
		"Root": {
			reason: "Pods run as restricted.",
			object: smallest(spec(`pod: {securityContext: {runAsUser: 0}}`)),
			want:   []string{"spec.pod.securityContext.runAsUser: Invalid value: 0: spec.pod.securityContext.runAsUser in body should be greater than or equal to 1"},
		},
		"GPUCountAlone": {
			reason: "A number of nothing says nothing.",
			object: smallest(spec(`resources: {gpuCount: 2}`)),
			want: []string{"spec.resources.gpuCount: Invalid value: gpuCount needs gpu: set gpu to the resource of the GPU as nodes " +
				"advertise it, for instance nvidia.com/gpu, or use deviceRequest, which has its own count"},
		},
		"ZeroGPUs": {
			reason: "No GPU is asked for by leaving both out.",
			object: smallest(spec(`resources: {gpu: nvidia.com/gpu, gpuCount: 0}`)),
			want:   []string{"spec.resources.gpuCount: Invalid value: 0: spec.resources.gpuCount in body should be greater than or equal to 1"},
		},
		"TooManyGPUs": {
			reason: "No machine has as many.",
			object: smallest(spec(`resources: {gpu: nvidia.com/gpu, gpuCount: 65}`)),
			want:   []string{"spec.resources.gpuCount: Invalid value: 65: spec.resources.gpuCount in body should be less than or equal to 64"},
		},
		"GPUProduct": {
			reason: "A product is a label of nodes, not a resource.",
			object: smallest(spec(`resources: {gpu: a100}`)),
			want:   []string{`spec.resources.gpu: Invalid value: "a100": must be a resource name of the form vendor/device, for instance nvidia.com/gpu`},
		},
		"MinAboveMax": {
			reason: "Both fields are named.",
			object: smallest(spec(`scaling: {minReplicas: 5, maxReplicas: 3}`)),
			want:   []string{"spec.scaling.minReplicas: Invalid value: minReplicas must not be above maxReplicas: lower minReplicas or raise maxReplicas"},
		},
		"NoMax": {
			reason: "Growth needs a bound.",
			object: smallest(spec(`scaling: {minReplicas: 2}`)),
			want:   []string{"spec.scaling.maxReplicas: Required value"},
		},
		"NegativeMin": {
			reason: "Less than nothing is no size.",
			object: smallest(spec(`scaling: {minReplicas: -1, maxReplicas: 3}`)),
			want:   []string{"spec.scaling.minReplicas: Invalid value: -1: spec.scaling.minReplicas in body should be greater than or equal to 0"},
		},
		"IdleWithoutSleep": {
			reason: "It would have no effect.",
			object: smallest(spec(`scaling: {maxReplicas: 3, idleAfterSeconds: 600}`)),
			want: []string{"spec.scaling.idleAfterSeconds: Invalid value: idleAfterSeconds needs an Algorithm that may sleep: " +
				"set minReplicas to 0, or remove idleAfterSeconds"},
		},
		"IdleForAMoment": {
			reason: "A window of the metrics has to pass.",
			object: smallest(spec(`scaling: {minReplicas: 0, maxReplicas: 3, idleAfterSeconds: 10}`)),
			want:   []string{"spec.scaling.idleAfterSeconds: Invalid value: 10: spec.scaling.idleAfterSeconds in body should be greater than or equal to 60"},
		},
		"ZeroCPU": {
			reason: "Zero is no size.",
			object: smallest(spec(`resources: {cpu: 0}`)),
			want:   []string{"spec.resources.cpu: Invalid value: 0: " + cores},
		},
		"NegativeCPU": {
			reason: "Less than zero is no size.",
			object: smallest(spec(`resources: {cpu: -500m}`)),
			want:   []string{`spec.resources.cpu: Invalid value: "-500m": ` + cores},
		},
		"NegativeWholeCPU": {
			reason: "Less than zero is no size.",
			object: smallest(spec(`resources: {cpu: -1}`)),
			want:   []string{"spec.resources.cpu: Invalid value: -1: " + cores},
		},
		"GarbageCPU": {
			reason: "The second message tells what the first, Kubernetes' own, does not.",
			object: smallest(spec(`resources: {cpu: lots}`)),
			want: []string{
				`spec.resources.cpu: Invalid value: "lots": spec.resources.cpu ` + pattern,
				`spec.resources.cpu: Invalid value: "lots": ` + cores,
			},
		},
		"ZeroMemory": {
			reason: "Zero is no size.",
			object: smallest(spec(`resources: {memory: 0}`)),
			want:   []string{"spec.resources.memory: Invalid value: 0: " + bytes},
		},
		"MilliMemory": {
			reason: "512m of memory is half a byte.",
			object: smallest(spec(`resources: {memory: 512m}`)),
			want:   []string{`spec.resources.memory: Invalid value: "512m": ` + bytes},
		},
		"WrongUnit": {
			reason: "The unit is Mi or M.",
			object: smallest(spec(`resources: {memory: 512MB}`)),
			want: []string{
				`spec.resources.memory: Invalid value: "512MB": spec.resources.memory ` + pattern,
				`spec.resources.memory: Invalid value: "512MB": ` + bytes,
			},
		},
		"NegativeSharedMemory": {
			reason: "Less than zero is no size.",
			object: smallest(spec(`resources: {sharedMemory: -1Gi}`)),
			want:   []string{`spec.resources.sharedMemory: Invalid value: "-1Gi": ` + bytes},
		},
		"MaxUnavailableZero": {
			reason: "A node could never be drained.",
			object: smallest(spec(`availability: {maxUnavailable: 0}`)),
			want:   []string{"spec.availability.maxUnavailable: Invalid value: 0: " + share},
		},
		"MaxUnavailableNoShare": {
			reason: "A node could never be drained.",
			object: smallest(spec(`availability: {maxUnavailable: "0%"}`)),
			want:   []string{`spec.availability.maxUnavailable: Invalid value: "0%": ` + share},
		},
		"MaxUnavailableOverAll": {
			reason: "There is no more than all.",
			object: smallest(spec(`availability: {maxUnavailable: "150%"}`)),
			want:   []string{`spec.availability.maxUnavailable: Invalid value: "150%": ` + share},
		},
		"MaxUnavailableText": {
			reason: "A number in quotes is neither a number nor a share.",
			object: smallest(spec(`availability: {maxUnavailable: "1"}`)),
			want:   []string{`spec.availability.maxUnavailable: Invalid value: "1": ` + share},
		},
		"UnknownSpread": {
			reason: "The choices are named.",
			object: smallest(spec(`availability: {zones: Always}`)),
			want:   []string{`spec.availability.zones: Unsupported value: "Always": supported values: "Preferred", "Required", "None"`},
		},
		"UnicodeVariable": {
			reason: "No shell could read it.",
			object: smallest(spec(`env: [{name: größe}]`)),
			want:   []string{`spec.env[0].name: Invalid value: "größe": ` + variable},
		},
		"VariableWithDigitFirst": {
			reason: "Kubernetes would refuse the pod.",
			object: smallest(spec(`env: [{name: 1A}]`)),
			want:   []string{`spec.env[0].name: Invalid value: "1A": ` + variable},
		},
		"VariableTwice": {
			reason: "Which one holds?",
			object: smallest(spec(`env: [{name: A, value: one}, {name: A, value: two}]`)),
			want:   []string{`spec.env[1]: Duplicate value: {"name":"A"}`},
		},
		"VariableWithoutName": {
			reason: "A value needs a name.",
			object: smallest(spec(`env: [{value: x}]`)),
			want:   []string{"spec.env[0].name: Required value"},
		},
		"ValueAndSource": {
			reason: "Which one holds?",
			object: smallest(spec(`env: [{name: A, value: x, valueFrom: {secretKeyRef: {name: s, key: k}}}]`)),
			want:   []string{"spec.env[0]: Invalid value: set either value or valueFrom, not both"},
		},
		"NoSource": {
			reason: "A source has to be named.",
			object: smallest(spec(`env: [{name: A, valueFrom: {}}]`)),
			want:   []string{"spec.env[0].valueFrom: Invalid value: set exactly one of secretKeyRef and configMapKeyRef"},
		},
		"TwoSources": {
			reason: "Which one holds?",
			object: smallest(spec(`env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}, configMapKeyRef: {name: s, key: k}}}]`)),
			want:   []string{"spec.env[0].valueFrom: Invalid value: set exactly one of secretKeyRef and configMapKeyRef"},
		},
		"NoKey": {
			reason: "A Secret has many keys.",
			object: smallest(spec(`env: [{name: A, valueFrom: {secretKeyRef: {name: s}}}]`)),
			want:   []string{"spec.env[0].valueFrom.secretKeyRef.key: Required value"},
		},
		"ConfigMapName": {
			reason: "No ConfigMap can have the name.",
			object: smallest(spec(`env: [{name: A, valueFrom: {configMapKeyRef: {name: M, key: k}}}]`)),
			want:   []string{`spec.env[0].valueFrom.configMapKeyRef.name: Invalid value: "M": ` + object},
		},
		"ConfigMapKey": {
			reason: "Kubernetes would refuse the pod.",
			object: smallest(spec(`env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: ..}}}]`)),
			want:   []string{`spec.env[0].valueFrom.configMapKeyRef.key: Invalid value: "..": must be letters, digits, '-', '_' and '.', and not start with '..'`},
		},
		"KeyIsAPath": {
			reason: "Kubernetes would refuse the pod.",
			object: smallest(spec(`env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: a/b}}}]`)),
			want:   []string{`spec.env[0].valueFrom.secretKeyRef.key: Invalid value: "a/b": must be letters, digits, '-', '_' and '.', and not start with '..'`},
		},
		"SecretNameInUpperCase": {
			reason: "No Secret can have the name.",
			object: smallest(spec(`env: [{name: A, valueFrom: {secretKeyRef: {name: S, key: k}}}]`)),
			want:   []string{`spec.env[0].valueFrom.secretKeyRef.name: Invalid value: "S": ` + object},
		},
		"HugeFile": {
			reason: "A ConfigMap could not hold it.",
			object: smallest(config(786433)),
			want:   []string{"spec.config.file-0: Too long: may not be more than 786432 bytes"},
		},
		"HugeFilesTogether": {
			reason: "A ConfigMap could not hold them.",
			object: smallest(config(786432, 1)),
			want:   []string{"spec.config: Invalid value: must hold at most 786432 bytes in total: move larger files into the image or a volume"},
		},
		"TooManyFiles": {
			reason: "The bound is named.",
			object: smallest(config(make([]int, 65)...)),
			want:   []string{"spec.config: Too many: 65: must have at most 64 items"},
		},
		"NoFiles": {
			reason: "There is nothing to mount.",
			object: smallest(spec(`config: {}`)),
			want:   []string{"spec.config: Invalid value: 0: spec.config in body should have at least 1 properties"},
		},
		"FileInFolder": {
			reason: "A ConfigMap has no folders.",
			object: smallest(spec(`config: {a/b: x}`)),
			want:   []string{fileNames},
		},
		"UnicodeFile": {
			reason: "Kubernetes would refuse the ConfigMap.",
			object: smallest(spec(`config: {ä: x}`)),
			want:   []string{fileNames},
		},
		"TwoDots": {
			reason: "Kubernetes keeps such names for itself.",
			object: smallest(spec(`config: {..data: x}`)),
			want:   []string{fileNames},
		},
		"RelativeMountPath": {
			reason: "Relative to what?",
			object: smallest(spec(`config: {a: x}
volumeMounts: [{name: config, mountPath: etc/reco}]`)),
			want: []string{`spec.volumeMounts[0].mountPath: Invalid value: "etc/reco": ` + path},
		},
		"MountOverRoot": {
			reason: "Nothing of the image would be left.",
			object: smallest(spec(`config: {a: x}
volumeMounts: [{name: config, mountPath: /}]`)),
			want: []string{`spec.volumeMounts[0].mountPath: Invalid value: "/": ` + path},
		},
		"MountOverSharedMemory": {
			reason: "resources.sharedMemory is mounted there.",
			object: smallest(spec(`config: {a: x}
volumeMounts: [{name: config, mountPath: /dev/shm}]`)),
			want: []string{`spec.volumeMounts[0].mountPath: Invalid value: "/dev/shm": ` + path},
		},
		"LongArgument": {
			reason: "The bound is named.",
			object: smallest(spec(`args: ["` + strings.Repeat("x", 4097) + `"]`)),
			want:   []string{"spec.args[0]: Too long: may not be more than 4096 bytes"},
		},
		"PullSecretTwice": {
			reason: "Once is enough.",
			object: smallest(spec(`pod: {imagePullSecrets: [{name: a}, {name: a}]}`)),
			want:   []string{`spec.pod.imagePullSecrets[1]: Duplicate value: {"name":"a"}`},
		},
		"PullSecretInUpperCase": {
			reason: "No Secret can have the name.",
			object: smallest(spec(`pod: {imagePullSecrets: [{name: A}]}`)),
			want:   []string{`spec.pod.imagePullSecrets[0].name: Invalid value: "A": ` + object},
		},
		"RuntimeClassInUpperCase": {
			reason: "No class can have the name.",
			object: smallest(spec(`pod: {runtimeClassName: A}`)),
			want:   []string{`spec.pod.runtimeClassName: Invalid value: "A": ` + object},
		},
		"PriorityClassInUpperCase": {
			reason: "No class can have the name.",
			object: smallest(spec(`pod: {priorityClassName: A}`)),
			want:   []string{`spec.pod.priorityClassName: Invalid value: "A": ` + object},
		},
		"EmptyServiceAccount": {
			reason: "Leave it out instead.",
			object: smallest(spec(`pod: {serviceAccountName: ""}`)),
			want:   []string{`spec.pod.serviceAccountName: Invalid value: "": ` + object},
		},
		"BadLabel": {
			reason: "Kubernetes would refuse the pod.",
			object: smallest(spec(`pod: {nodeSelector: {a b: x}}`)),
			want:   []string{"spec.pod.nodeSelector: Invalid value: keys must be label keys, for instance nvidia.com/gpu.product"},
		},
		"BadLabelValue": {
			reason: "Kubernetes would refuse the pod.",
			object: smallest(spec(`pod: {nodeSelector: {a: x y}}`)),
			want:   []string{`spec.pod.nodeSelector[a]: Invalid value: "x y": must be the value of a label: letters, digits, '-', '_' and '.', with a letter or digit at both ends`},
		},
		"LongLabelValue": {
			reason: "Kubernetes would refuse the pod.",
			object: smallest(spec("pod: {nodeSelector: {a: " + strings.Repeat("x", 64) + "}}")),
			want:   []string{"spec.pod.nodeSelector.a: Too long: may not be more than 63 bytes"},
		},
		"UnknownOperator": {
			reason: "The choices are named.",
			object: smallest(spec(`pod: {tolerations: [{key: a, operator: Is}]}`)),
			want:   []string{"spec.pod.tolerations[0]: Invalid value: operator must be Equal or Exists, or Lt or Gt where the cluster supports them"},
		},
		"UnknownEffect": {
			reason: "The choices are named.",
			object: smallest(spec(`pod: {tolerations: [{key: a, effect: Never}]}`)),
			want:   []string{"spec.pod.tolerations[0]: Invalid value: effect must be NoSchedule, PreferNoSchedule or NoExecute, or absent for all of them"},
		},
		"TolerationWithoutKey": {
			reason: "Every taint is tolerated on purpose only.",
			object: smallest(spec(`pod: {tolerations: [{value: b}]}`)),
			want:   []string{"spec.pod.tolerations[0]: Invalid value: a toleration without key needs operator Exists, which then tolerates every taint"},
		},
		"ExistsWithValue": {
			reason: "Kubernetes would refuse the pod.",
			object: smallest(spec(`pod: {tolerations: [{key: a, operator: Exists, value: b}]}`)),
			want:   []string{"spec.pod.tolerations[0]: Invalid value: a toleration with operator Exists must not have a value"},
		},
		"SecondsWithoutEffect": {
			reason: "Kubernetes would refuse the pod.",
			object: smallest(spec(`pod: {tolerations: [{key: a, tolerationSeconds: 3}]}`)),
			want:   []string{"spec.pod.tolerations[0]: Invalid value: tolerationSeconds needs effect NoExecute"},
		},
		"UnknownFields": {
			reason: "A typing error is told, not ignored.",
			object: smallest(spec(`{replica: 3, resources: {gpus: 1}}`)),
			want: []string{
				`unknown field "spec.replica"`,
				`unknown field "spec.resources.gpus"`,
			},
		},
		"ExperimentName": {
			reason: "No Experiment has such a name.",
			object: smallest(spec(`{lifecycle: {}, route: {gateway: {name: shared, namespace: gateway}}, experiment: "A b"}`)),
			want:   []string{"spec.experiment: Invalid value: \"A b\": must be the name of an Experiment: lower case letters, digits and '-', with a letter or digit at both ends"},
		},
		"MirrorOfNothing": {
			reason: "Nothing would be copied.",
			object: smallest(spec(`lifecycle: {mirrorPercent: 0}`)),
			want:   []string{"spec.lifecycle.mirrorPercent: Invalid value: 0: spec.lifecycle.mirrorPercent in body should be greater than or equal to 1"},
		},
		"FieldOfTomorrow": {
			reason: "A field comes with what makes it work.",
			object: smallest(spec(`train: {image: r.example.org/train:1}`)),
			want:   []string{`unknown field "spec.train"`},
		},
	}
	maps.Copy(cases, servingRefused())
	maps.Copy(cases, modelRefused())
	maps.Copy(cases, sloRefused())
	maps.Copy(cases, lifecycleRefused())
	maps.Copy(cases, podRefused())

	a.refuses(t, algorithmXRD, cases)
}

// refuses objects for what is wrong with them, and shows that every rule of the definition refuses one.
func (a admission) refuses(t *testing.T, xrd string, cases map[string]refused) {
	t.Helper()
	var all []string
	for name, tc := range cases {
		all = append(all, tc.want...)
		t.Run(name, func(t *testing.T) {
			_, errs := a.create(t, tc.object)
			if diff := cmp.Diff(tc.want, errs); diff != "" {
				t.Errorf("\n%s\ncreate(...): -want errors, +got errors:\n%s", tc.reason, diff)
			}
		})
	}

	for _, rule := range rules(t, written(t)[xrd]) {
		if !slices.ContainsFunc(all, rule.says) {
			t.Errorf("nothing is refused by the rule of %s: %s", rule.path, rule.message)
		}
	}
}

// A rule of a schema that looks at one object, not at a change.
type rule struct{ path, message string }

func rules(t *testing.T, s extv1.JSONSchemaProps) []rule {
	t.Helper()
	var all []rule
	for _, n := range nodes(t, "", s, nil) {
		for _, v := range n.schema.XValidations {
			if !strings.Contains(v.Rule, "oldSelf") {
				all = append(all, rule{path: strings.TrimPrefix(n.path, ".") + v.FieldPath, message: v.Message})
			}
		}
	}
	return all
}

// index of an item, or key of a value.
var index = regexp.MustCompile(`\[[^\]]*\]|\{\}`)

// says tells whether an error is what the rule says.
func (r rule) says(err string) bool {
	return strings.HasPrefix(index.ReplaceAllString(err, "[]"), strings.TrimPrefix(index.ReplaceAllString(r.path, "[]"), ".")+": ") &&
		strings.Contains(err, r.message)
}
