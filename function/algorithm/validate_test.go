// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// TestBadSpecs makes nothing of a bad spec, leaves everything as it is when it
// is a bad edit, and names field, value and remedy.
func TestBadSpecs(t *testing.T) {
	huge := strings.Repeat("x", 500_000)

	cases := map[string]struct {
		spec   string
		reason xpv2.ConditionReason
		words  []string
	}{
		"NoImage":            {"{replicas: 1}", "", []string{"spec.image", `""`}},
		"ImageWithBlank":     {"{image: 'a b'}", "", []string{"spec.image", `"a b"`, "white space"}},
		"NegativeReplicas":   {"{image: x, replicas: -1}", "", []string{"spec.replicas", "-1", "0 to 1000"}},
		"TextReplicas":       {"{image: x, replicas: many}", "", []string{"replicas", "string"}},
		"HugeReplicas":       {"{image: x, replicas: 1e300}", "", []string{"replicas", "1e+300"}},
		"ManyReplicas":       {"{image: x, replicas: 1001}", "", []string{"spec.replicas", "1001"}},
		"PortZero":           {"{image: x, port: 0}", "", []string{"spec.port", "65535"}},
		"PortTooHigh":        {"{image: x, port: 65536}", "", []string{"spec.port", "65536"}},
		"Root":               {"{image: x, runAsUser: 0}", "", []string{"spec.runAsUser", "root"}},
		"EnvName":            {"{image: x, env: [{name: 1A}]}", "", []string{"spec.env[0].name", `"1A"`}},
		"EnvUnicode":         {"{image: x, env: [{name: größe}]}", "", []string{"spec.env[0].name", "größe"}},
		"EnvTwice":           {"{image: x, env: [{name: A}, {name: A}]}", "", []string{"spec.env[1].name", "twice", "remove"}},
		"EnvBoth":            {"{image: x, env: [{name: A, value: b, valueFrom: {}}]}", "", []string{"spec.env[0].valueFrom", "remove"}},
		"EnvNoSource":        {"{image: x, env: [{name: A, valueFrom: {}}]}", "", []string{"spec.env[0].valueFrom", "exactly one"}},
		"EnvKey":             {"{image: x, env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: 'a b'}}}]}", "", []string{"secretKeyRef.key", `"a b"`}},
		"EnvRef":             {"{image: x, env: [{name: A, valueFrom: {configMapKeyRef: {name: A, key: a}}}]}", "", []string{"configMapKeyRef.name", `"A"`}},
		"ConfigTooLarge":     {"{image: x, config: {files: {a: " + huge + ", b: " + huge + "}}}", v1alpha1.ReasonConfigTooLarge, []string{"spec.config.files", "1000000", "786432", "into the image"}},
		"ConfigEmpty":        {"{image: x, config: {}}", "", []string{"spec.config.files", "add a file"}},
		"ConfigName":         {"{image: x, config: {files: {../etc: a}}}", "", []string{"spec.config.files", "../etc"}},
		"ConfigDots":         {"{image: x, config: {files: {..: a}}}", "", []string{"spec.config.files", `".."`}},
		"ConfigRelative":     {"{image: x, config: {mountPath: etc, files: {a: b}}}", "", []string{"spec.config.mountPath", `"etc"`, "absolute"}},
		"ConfigRoot":         {"{image: x, config: {mountPath: //, files: {a: b}}}", "", []string{"spec.config.mountPath", "other than /"}},
		"ConfigColon":        {"{image: x, config: {mountPath: '/a:b', files: {a: b}}}", "", []string{"spec.config.mountPath", "':'"}},
		"ConfigOverShm":      {"{image: x, resources: {sharedMemory: 1Gi}, config: {mountPath: /dev/shm/, files: {a: b}}}", "", []string{"spec.config.mountPath", "sharedMemory", "another folder"}},
		"CPUText":            {"{image: x, resources: {cpu: lots}}", "", []string{"spec.resources.cpu", `"lots"`, "500m"}},
		"CPUNegative":        {"{image: x, resources: {cpu: '-1'}}", "", []string{"spec.resources.cpu", "-1", "greater than zero"}},
		"MemoryText":         {"{image: x, resources: {memory: 1GiB}}", "", []string{"spec.resources.memory", `"1GiB"`, "2Gi"}},
		"MemoryMilli":        {"{image: x, resources: {memory: 512m}}", "", []string{"spec.resources.memory", `"512m"`, "thousandth"}},
		"MemoryMap":          {"{image: x, resources: {memory: {}}}", "", []string{"spec.resources.memory", "quantity"}},
		"SharedMemoryZero":   {"{image: x, resources: {sharedMemory: 0}}", "", []string{"spec.resources.sharedMemory", `"0"`}},
		"GPUCountWithoutGPU": {"{image: x, resources: {gpuCount: 2}}", "", []string{"spec.resources.gpuCount", "2", "spec.resources.gpu", "nvidia.com/gpu"}},
		"GPUCountZero":       {"{image: x, resources: {gpu: nvidia.com/gpu, gpuCount: 0}}", "", []string{"spec.resources.gpuCount", "1 to 64"}},
		"GPUWithoutVendor":   {"{image: x, resources: {gpu: gpu}}", "", []string{"spec.resources.gpu", `"gpu"`, "vendor/device"}},
		"GPUNative":          {"{image: x, resources: {gpu: kubernetes.io/gpu}}", "", []string{"spec.resources.gpu", "kubernetes.io/gpu"}},
		"MinAboveMax":        {"{image: x, scaling: {minReplicas: 5, maxReplicas: 2}}", "", []string{"spec.scaling.minReplicas", "5", "maxReplicas 2", "raise maxReplicas"}},
		"MinNegative":        {"{image: x, scaling: {minReplicas: -1, maxReplicas: 2}}", "", []string{"spec.scaling.minReplicas", "-1"}},
		"NoMax":              {"{image: x, scaling: {}}", "", []string{"spec.scaling.maxReplicas", "0"}},
		"Zones":              {"{image: x, availability: {zones: Some}}", "", []string{"spec.availability.zones", `"Some"`, "Preferred"}},
		"UnavailableZero":    {"{image: x, availability: {maxUnavailable: 0}}", "", []string{"spec.availability.maxUnavailable", `"0"`}},
		"UnavailableShare":   {"{image: x, availability: {maxUnavailable: 101%}}", "", []string{"spec.availability.maxUnavailable", "101%", "100%"}},
		"UnavailablePart":    {"{image: x, availability: {maxUnavailable: 1.5}}", "", []string{"spec.availability.maxUnavailable", "1.5", "share"}},
		"NodeSelectorKey":    {"{image: x, scheduling: {nodeSelector: {'a b': c}}}", "", []string{"spec.scheduling.nodeSelector", `"a b"`}},
		"NodeSelectorValue":  {"{image: x, scheduling: {nodeSelector: {a: 'b c'}}}", "", []string{"spec.scheduling.nodeSelector[a]", `"b c"`}},
		"TolerationOperator": {"{image: x, scheduling: {tolerations: [{key: a, operator: In}]}}", "", []string{"spec.scheduling.tolerations[0]", `"In"`, "Exists"}},
		"TolerationEffect":   {"{image: x, scheduling: {tolerations: [{key: a, effect: Never}]}}", "", []string{"tolerations[0]", `"Never"`, "NoSchedule"}},
		"TolerationNoKey":    {"{image: x, scheduling: {tolerations: [{value: a}]}}", "", []string{"tolerations[0]: key"}},
		"TolerationKey":      {"{image: x, scheduling: {tolerations: [{key: 'a b'}]}}", "", []string{"tolerations[0]: key", `"a b"`}},
		"TolerationExists":   {"{image: x, scheduling: {tolerations: [{key: a, operator: Exists, value: b}]}}", "", []string{"tolerations[0]: value", "empty"}},
		"TolerationValue":    {"{image: x, scheduling: {tolerations: [{key: a, value: 'b c'}]}}", "", []string{"tolerations[0]: value", `"b c"`}},
		"TolerationSeconds":  {"{image: x, scheduling: {tolerations: [{key: a, tolerationSeconds: 5}]}}", "", []string{"tolerations[0]: tolerationSeconds", "NoExecute"}},
		"RuntimeClass":       {"{image: x, scheduling: {runtimeClassName: A B}}", "", []string{"spec.scheduling.runtimeClassName", `"A B"`}},
		"PriorityClass":      {"{image: x, scheduling: {priorityClassName: A B}}", "", []string{"spec.scheduling.priorityClassName", `"A B"`}},
		"ServiceAccount":     {"{image: x, serviceAccountName: A}", "", []string{"spec.serviceAccountName", `"A"`}},
		"PullSecretName":     {"{image: x, imagePullSecrets: [{name: ''}]}", "", []string{"spec.imagePullSecrets[0].name"}},
		"PullSecretTwice":    {"{image: x, imagePullSecrets: [{name: a}, {name: a}]}", "", []string{"spec.imagePullSecrets[1].name", "twice"}},
		"Empty":              {"{}", "", []string{"spec.image"}},
		"Several":            {"{image: x, replicas: -1, port: 0}", "", []string{"spec.replicas", "spec.port"}},
		"Many": {
			"{image: '', replicas: -1, port: 0, runAsUser: 0, serviceAccountName: A, env: [{name: 1A}, {name: 2A}]}", "",
			[]string{"spec.image", "and 2 more"},
		},
		"LongValue": {"{image: '" + strings.Repeat("é ", 200) + "'}", "", []string{"spec.image", "…"}},
	}

	running := serving(t, full)

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.reason == "" {
				tc.reason = v1alpha1.ReasonInvalidSpec
			}

			p := newWorld(t, tc.spec).plan()
			c := condition(p, v1alpha1.TypeAccepted)

			if c.Status != "False" || c.Reason != tc.reason {
				t.Errorf("Accepted: got %s %s, want False %s", c.Status, c.Reason, tc.reason)
			}

			for _, word := range tc.words {
				if !strings.Contains(c.Message, word) {
					t.Errorf("message %q lacks %q", c.Message, word)
				}
			}

			if len(c.Message) > 2000 {
				t.Errorf("a message of %d bytes is for nobody", len(c.Message))
			}

			if len(p.Objects) > 0 || p.Ready || condition(p, v1alpha1.TypeComposed).Status != "False" {
				t.Errorf("something is made of a bad spec: %d objects, %v", len(p.Objects), p.Conditions)
			}

			w := *running
			w.edit(tc.spec)

			p = w.plan()
			before := w.request.Observed
			w.compose(p)

			if diff := cmp.Diff(before, w.request.Observed); diff != "" {
				t.Errorf("a bad edit changes what runs: -before, +after:\n%s", diff)
			}

			if !p.Ready || statusOf(p).Phase != v1alpha1.PhaseReady || condition(p, v1alpha1.TypePodsHealthy).Status != "True" {
				t.Errorf("what serves no longer counts: ready %t, phase %s", p.Ready, statusOf(p).Phase)
			}

			w.edit(full)

			if c := condition(w.plan(), v1alpha1.TypeAccepted); c.Status != "True" || c.Reason != v1alpha1.ReasonValid {
				t.Errorf("after the edit was corrected: Accepted %s %s", c.Status, c.Reason)
			}
		})
	}
}

func TestBadNames(t *testing.T) {
	for name, word := range map[string]string{
		strings.Repeat("a", 64): "63",
		"reco.v2":               "metadata.name",
		"größe":                 "metadata.name",
		"1st":                   "metadata.name",
		"default":               "another name",
		"kubernetes":            "another name",
	} {
		p := newWorld(t, "{image: x}").named(name).plan()
		if c := condition(p, v1alpha1.TypeAccepted); c.Status != "False" || !strings.Contains(c.Message, word) || len(p.Objects) > 0 {
			t.Errorf("name %q: %s %q, %d objects", name, c.Status, c.Message, len(p.Objects))
		}
	}
}
