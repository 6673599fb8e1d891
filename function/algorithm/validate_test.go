// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// TestBadSpecs makes nothing of a bad spec, leaves everything as it is when it is a bad edit, and names field, value and remedy.
func TestBadSpecs(t *testing.T) {
	huge := strings.Repeat("x", 500_000)
	cases := map[string]struct {
		spec   string
		reason xpv2.ConditionReason
		words  []string
	}{
		"NoImage":            {"{replicas: 1}", "", []string{"spec.image", "missing"}},
		"ImageWithBlank":     {"{image: 'a b'}", "", []string{"spec.image", `"a b"`, "must be an image reference"}},
		"NegativeReplicas":   {"{image: x, replicas: -1}", "", []string{"spec.replicas", "-1", "0 to 1000"}},
		"TextReplicas":       {"{image: x, replicas: many}", "", []string{"replicas", "integer"}},
		"HugeReplicas":       {"{image: x, replicas: 1e300}", "", []string{"replicas", "1e+300"}},
		"ManyReplicas":       {"{image: x, replicas: 1001}", "", []string{"spec.replicas", "1001"}},
		"PortZero":           {"{image: x, port: 0}", "", []string{"spec.port", "65535"}},
		"PortTooHigh":        {"{image: x, port: 65536}", "", []string{"spec.port", "65536"}},
		"Root":               {"{image: x, pod: {securityContext: {runAsUser: 0}}}", "", []string{"spec.pod.securityContext.runAsUser", "1 to 2147483647"}},
		"EnvName":            {"{image: x, env: [{name: 1A}]}", "", []string{"spec.env[0].name", `"1A"`}},
		"EnvUnicode":         {"{image: x, env: [{name: größe}]}", "", []string{"spec.env[0].name", "größe"}},
		"EnvTwice":           {"{image: x, env: [{name: A}, {name: A}]}", "", []string{"spec.env[1].name", "twice", "remove"}},
		"EnvBoth":            {"{image: x, env: [{name: A, value: b, valueFrom: {}}]}", "", []string{"spec.env[0]", "not both"}},
		"EnvNoSource":        {"{image: x, env: [{name: A, valueFrom: {}}]}", "", []string{"spec.env[0].valueFrom", "exactly one"}},
		"EnvKey":             {"{image: x, env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: 'a b'}}}]}", "", []string{"secretKeyRef.key", `"a b"`}},
		"EnvRef":             {"{image: x, env: [{name: A, valueFrom: {configMapKeyRef: {name: A, key: a}}}]}", "", []string{"configMapKeyRef.name", `"A"`}},
		"ConfigTooLarge":     {"{image: x, config: {a: " + huge + ", b: " + huge + "}}", v1alpha1.ReasonConfigTooLarge, []string{"spec.config", "1000000", "786432", "into the image"}},
		"ConfigEmpty":        {"{image: x, config: {}}", "", []string{"spec.config", "at least 1"}},
		"ConfigName":         {"{image: x, config: {../etc: a}}", "", []string{"spec.config", "../etc"}},
		"ConfigDots":         {"{image: x, config: {..: a}}", "", []string{"spec.config", "[..]"}},
		"ConfigRelative":     {"{image: x, config: {a: b}, volumeMounts: [{name: config, mountPath: etc}]}", "", []string{"spec.volumeMounts[0].mountPath", `"etc"`, "absolute"}},
		"ConfigRoot":         {"{image: x, config: {a: b}, volumeMounts: [{name: config, mountPath: //}]}", "", []string{"spec.volumeMounts[0].mountPath", "other than /"}},
		"ConfigColon":        {"{image: x, config: {a: b}, volumeMounts: [{name: config, mountPath: '/a:b'}]}", "", []string{"spec.volumeMounts[0].mountPath", "':'"}},
		"ConfigOverShm":      {"{image: x, resources: {sharedMemory: 1Gi}, config: {a: b}, volumeMounts: [{name: config, mountPath: /dev/shm/}]}", "", []string{"spec.volumeMounts[0].mountPath", "sharedMemory", "another folder"}},
		"CPUText":            {"{image: x, resources: {cpu: lots}}", "", []string{"spec.resources.cpu", `"lots"`, "500m"}},
		"CPUNegative":        {"{image: x, resources: {cpu: '-1'}}", "", []string{"spec.resources.cpu", "-1", "at least 1m"}},
		"MemoryText":         {"{image: x, resources: {memory: 1GiB}}", "", []string{"spec.resources.memory", `"1GiB"`, "512Mi"}},
		"MemoryMilli":        {"{image: x, resources: {memory: 512m}}", "", []string{"spec.resources.memory", `"512m"`, "at least 1Mi"}},
		"MemoryMap":          {"{image: x, resources: {memory: {}}}", "", []string{"spec.resources.memory", "number or a text"}},
		"SharedMemoryZero":   {"{image: x, resources: {sharedMemory: 0}}", "", []string{"spec.resources.sharedMemory", ": 0: "}},
		"GPUCountWithoutGPU": {"{image: x, resources: {gpuCount: 2}}", "", []string{"spec.resources.gpuCount", "2", "spec.resources.gpu", "nvidia.com/gpu"}},
		"GPUCountZero":       {"{image: x, resources: {gpu: nvidia.com/gpu, gpuCount: 0}}", "", []string{"spec.resources.gpuCount", "1 to 64"}},
		"GPUWithoutVendor":   {"{image: x, resources: {gpu: gpu}}", "", []string{"spec.resources.gpu", `"gpu"`, "vendor/device"}},
		"GPUNative":          {"{image: x, resources: {gpu: kubernetes.io/gpu}}", "", []string{"spec.resources.gpu", "kubernetes.io/gpu"}},
		"MinAboveMax":        {"{image: x, scaling: {minReplicas: 5, maxReplicas: 2}}", "", []string{"spec.scaling.minReplicas", "5", "lower minReplicas", "raise maxReplicas"}},
		"MinNegative":        {"{image: x, scaling: {minReplicas: -1, maxReplicas: 2}}", "", []string{"spec.scaling.minReplicas", "-1"}},
		"NoMax":              {"{image: x, scaling: {}}", "", []string{"spec.scaling.maxReplicas", "0"}},
		"Zones":              {"{image: x, availability: {zones: Some}}", "", []string{"spec.availability.zones", `"Some"`, "Preferred"}},
		"UnavailableZero":    {"{image: x, availability: {maxUnavailable: 0}}", "", []string{"spec.availability.maxUnavailable", ": 0: "}},
		"UnavailableShare":   {"{image: x, availability: {maxUnavailable: 101%}}", "", []string{"spec.availability.maxUnavailable", "101%", "100%"}},
		"UnavailablePart":    {"{image: x, availability: {maxUnavailable: 1.5}}", "", []string{"spec.availability.maxUnavailable", "1.5", "a number or a text"}},
		"NodeSelectorKey":    {"{image: x, pod: {nodeSelector: {'a b': c}}}", "", []string{"spec.pod.nodeSelector", "[a b]"}},
		"NodeSelectorValue":  {"{image: x, pod: {nodeSelector: {a: 'b c'}}}", "", []string{"spec.pod.nodeSelector[a]", `"b c"`}},
		"TolerationOperator": {"{image: x, pod: {tolerations: [{key: a, operator: In}]}}", "", []string{"spec.pod.tolerations[0]", "operator must be", "Exists"}},
		"TolerationEffect":   {"{image: x, pod: {tolerations: [{key: a, effect: Never}]}}", "", []string{"tolerations[0]", "effect must be", "NoSchedule"}},
		"TolerationNoKey":    {"{image: x, pod: {tolerations: [{value: a}]}}", "", []string{"tolerations[0]", "without key"}},
		"TolerationKey":      {"{image: x, pod: {tolerations: [{key: 'a b'}]}}", "", []string{"tolerations[0].key", `"a b"`}},
		"TolerationExists":   {"{image: x, pod: {tolerations: [{key: a, operator: Exists, value: b}]}}", "", []string{"tolerations[0]", "must not have a value"}},
		"TolerationValue":    {"{image: x, pod: {tolerations: [{key: a, value: 'b c'}]}}", "", []string{"tolerations[0].value", `"b c"`}},
		"TolerationSeconds":  {"{image: x, pod: {tolerations: [{key: a, tolerationSeconds: 5}]}}", "", []string{"tolerations[0]: tolerationSeconds", "NoExecute"}},
		"RuntimeClass":       {"{image: x, pod: {runtimeClassName: A B}}", "", []string{"spec.pod.runtimeClassName", `"A B"`}},
		"PriorityClass":      {"{image: x, pod: {priorityClassName: A B}}", "", []string{"spec.pod.priorityClassName", `"A B"`}},
		"ServiceAccount":     {"{image: x, pod: {serviceAccountName: A}}", "", []string{"spec.pod.serviceAccountName", `"A"`}},
		"PullSecretName":     {"{image: x, pod: {imagePullSecrets: [{name: ''}]}}", "", []string{"spec.pod.imagePullSecrets[0].name"}},
		"PullSecretTwice":    {"{image: x, pod: {imagePullSecrets: [{name: a}, {name: a}]}}", "", []string{"spec.pod.imagePullSecrets[1].name", "twice"}},
		"SecretName":         {"{image: x, secrets: [{name: A}]}", "", []string{"spec.secrets[0].name", `"A"`}},
		"SecretTwice":        {"{image: x, secrets: [{name: a}, {name: a}]}", "", []string{"spec.secrets[1].name", "twice", "remove"}},
		"SecretRotate":       {"{image: x, secrets: [{name: a, rotate: Always}]}", "", []string{"spec.secrets[0].rotate", `"Always"`, "Restartless or Rolling"}},
		"SecretRelative":     {"{image: x, secrets: [{name: a}], volumeMounts: [{name: secret-a, mountPath: b}]}", "", []string{"spec.volumeMounts[0].mountPath", `"b"`, "absolute"}},
		"MountsSame":         {"{image: x, config: {a: b}, secrets: [{name: a}], volumeMounts: [{name: config, mountPath: /a/}, {name: secret-a, mountPath: /a}]}", "", []string{"spec.volumeMounts[1].mountPath", `"/a"`, "is the same as /a/", "spec.volumeMounts[0].mountPath", "another folder"}},
		"MountInside":        {"{image: x, secrets: [{name: a}], model: {uri: pvc://a}, volumeMounts: [{name: secret-a, mountPath: /models/a}]}", "", []string{"spec.volumeMounts[0].mountPath", "is inside /models", "spec.model"}},
		"MountAround":        {"{image: x, secrets: [{name: a}, {name: b}], volumeMounts: [{name: secret-a, mountPath: /s}, {name: secret-b, mountPath: /s/b}]}", "", []string{"spec.volumeMounts[1].mountPath", "is inside /s", "spec.volumeMounts[0].mountPath"}},
		"MountInShm":         {"{image: x, resources: {sharedMemory: 1Gi}, secrets: [{name: a}], volumeMounts: [{name: secret-a, mountPath: /dev/shm/a}]}", "", []string{"spec.volumeMounts[0].mountPath", "spec.resources.sharedMemory"}},
		"ModelFrom":          {"{image: x, model: {uri: 'ftp://a/b'}}", "", []string{"spec.model.uri", `"ftp://a/b"`, "s3://", "hf://", "pvc://"}},
		"ModelEmpty":         {"{image: x, model: {}}", "", []string{"spec.model.uri", "missing"}},
		"ModelOtherScheme":   {"{image: x, model: {uri: 's3://a1/b', liveAlias: c}}", "", []string{"spec.model.liveAlias", "only for the model registry", "models:/"}},
		"ModelPlainHTTP":     {"{image: x, model: {uri: 'http://a/b'}}", "", []string{"spec.model.digest", "missing", "https://"}},
		"ModelName":          {"{image: x, model: {uri: models:/a/b/7}}", "", []string{"spec.model.uri", `"models:/a/b/7"`, "models:/name/7"}},
		"ModelNoVersion":     {"{image: x, model: {uri: models:/a}}", "", []string{"spec.model.uri", "a version or an alias"}},
		"ModelVersion":       {"{image: x, model: {uri: models:/a/0}}", "", []string{"spec.model.uri", `"models:/a/0"`}},
		"ModelAlias":         {"{image: x, model: {uri: models:/a@V7}}", "", []string{"spec.model.uri", "@V7", "reserves"}},
		"ModelLiveAlias":     {"{image: x, model: {uri: models:/a@b, liveAlias: b}}", "", []string{"spec.model.liveAlias", "must differ from the alias in uri"}},
		"ModelEndpoint":      {"{image: x, model: {uri: 'models:/a@b?endpoint=c'}}", "", []string{"spec.model.uri", "endpoint=c", "https://"}},
		"ModelConfig":        {"{image: x, model: {uri: models:/a@b, config: X/Z}}", "", []string{"spec.model.config", `"X/Z"`, "ClusterProviderConfig/NAME"}},
		"ModelURI":           {"{image: x, model: {uri: 'gs://a1'}}", "", []string{"spec.model.uri", "gs://bucket/prefix"}},
		"ModelURIDots":       {"{image: x, model: {uri: s3://models/../b}}", "", []string{"spec.model.uri", "s3://bucket/prefix"}},
		"ModelRegion":        {"{image: x, model: {uri: 's3://models/b?region=A'}}", "", []string{"spec.model.uri", "region=A", "eu-central-1"}},
		"ModelReference":     {"{image: x, model: {uri: oci://}}", "", []string{"spec.model.uri", "sha256"}},
		"ModelClaim":         {"{image: x, model: {uri: pvc://A}}", "", []string{"spec.model.uri", `"pvc://A"`, "PersistentVolumeClaim"}},
		"ModelPath":          {"{image: x, model: {uri: pvc://a/../b}}", "", []string{"spec.model.uri", "without .."}},
		"ModelCredentials":   {"{image: x, model: {uri: pvc://a, credentials: b}}", "", []string{"spec.model.credentials", "remove"}},
		"ModelLogin":         {"{image: x, model: {uri: s3://models/b, credentials: A}}", "", []string{"spec.model.credentials", `"A"`}},
		"ModelDigest":        {"{image: x, model: {uri: s3://models/b, digest: abc}}", "", []string{"spec.model.digest", `"abc"`, "sha256:"}},
		"CacheOfVolume":      {"{image: x, model: {uri: pvc://a, cache: {resources: {requests: {storage: 1Gi}}}}}", "", []string{"spec.model.cache", "a volume needs none"}},
		"CacheNoSize":        {"{image: x, model: {uri: s3://models/b, cache: {}}}", "", []string{"spec.model.cache.resources", "is missing"}},
		"CacheText":          {"{image: x, model: {uri: s3://models/b, cache: {resources: {requests: {storage: big}}}}}", "", []string{"spec.model.cache.resources.requests.storage", `"big"`, "quantity"}},
		"CacheMilli":         {"{image: x, model: {uri: s3://models/b, cache: {resources: {requests: {storage: 20m}}}}}", "", []string{"spec.model.cache.resources.requests.storage", "at least 1Mi"}},
		"CacheMode":          {"{image: x, model: {uri: s3://models/b, cache: {resources: {requests: {storage: 1Gi}}, accessModes: [ReadOnlyMany]}}}", "", []string{"spec.model.cache.accessModes[0]", "ReadWriteMany or ReadWriteOnce"}},
		"CacheClass":         {"{image: x, model: {uri: s3://models/b, cache: {resources: {requests: {storage: 1Gi}}, storageClassName: A}}}", "", []string{"spec.model.cache.storageClassName", `"A"`}},
		"ProductsAlone":      {"{image: x, resources: {gpuProducts: [A100]}}", "", []string{"spec.resources.gpuProducts", "A100", "spec.resources.gpu"}},
		"ProductInWords":     {"{image: x, resources: {gpu: nvidia.com/gpu, gpuProducts: [A 100]}}", "", []string{"spec.resources.gpuProducts[0]", `"A 100"`}},
		"Latency":            {"{image: x, scaling: {maxReplicas: 2, targetLatencyMs: 0}}", "", []string{"spec.scaling.targetLatencyMs", "3600000"}},
		"Percentile":         {"{image: x, objectives: {latencyMs: 5, latencyPercentile: 98}}", "", []string{"spec.objectives.latencyPercentile", "98", "50, 90, 95 or 99"}},
		"Signal":             {"{image: x, scaling: {maxReplicas: 2, signal: Memory}}", "", []string{"spec.scaling.signal", `"Memory"`, "Auto"}},
		"SignalNoMeasure":    {"{image: x, scaling: {maxReplicas: 2, signal: InFlight}}", "", []string{"spec.scaling.signal", "perReplica"}},
		"PerReplicaAlone":    {"{image: x, scaling: {maxReplicas: 2, perReplica: 2}}", "", []string{"spec.scaling.perReplica", "unit"}},
		"PerReplicaZero":     {"{image: x, scaling: {maxReplicas: 2, signal: InFlight, perReplica: 0}}", "", []string{"spec.scaling.perReplica", "0.001"}},
		"QueryAlone":         {"{image: x, scaling: {maxReplicas: 2}, metrics: {queries: [{name: load, query: a}]}}", "", []string{"spec.scaling.signal", "both or neither"}},
		"QueryMissing":       {"{image: x, scaling: {maxReplicas: 2, signal: Query, perReplica: 2}}", "", []string{"spec.scaling.signal", "both or neither"}},
		"QueryLong":          {"{image: x, metrics: {queries: [{name: latency, query: " + strings.Repeat("ä", 2049) + "}]}}", "", []string{"spec.metrics.queries[0].query", "2049 characters"}},
		"ScaleDown":          {"{image: x, scaling: {maxReplicas: 2, scaleDownAfterSeconds: 3601}}", "", []string{"spec.scaling.scaleDownAfterSeconds", "3601"}},
		"MetricsPort":        {"{image: x, metrics: {port: 0}}", "", []string{"spec.metrics.port", "65535"}},
		"MetricsPath":        {"{image: x, metrics: {path: '/a?b'}}", "", []string{"spec.metrics.path", `"/a?b"`}},
		"MetricsText":        {"{image: x, metrics: {window: soon}}", "", []string{"spec.metrics.window", `"soon"`, "20s to 6h"}},
		"MetricsWindow":      {"{image: x, metrics: {window: 10s}}", "", []string{"spec.metrics.window", "10s", "20s to 6h"}},
		"MetricsConfig":      {"{image: x, metrics: {providerConfigRef: {kind: Secret, name: a}}}", "", []string{"spec.metrics.providerConfigRef", "kind: Secret"}},
		"MetricsQuery":       {"{image: x, metrics: {queries: [{name: latency, query: l, max: 1}]}}", "", []string{"spec.metrics.queries[0]", "have no bounds"}},
		"SuccessRatio":       {"{image: x, objectives: {successRatio: 99}}", "", []string{"spec.objectives.successRatio", "99", "above 0 and below 1"}},
		"CheckName":          {"{image: x, metrics: {queries: [{name: A, query: b, min: 1}]}}", "", []string{"spec.metrics.queries[0].name", `"A"`}},
		"CheckBuiltIn":       {"{image: x, metrics: {queries: [{name: request-rate, query: b, min: 1}]}}", "", []string{"spec.metrics.queries[0].name", "built-in"}},
		"CheckTwice":         {"{image: x, metrics: {queries: [{name: a, query: b, min: 1}, {name: a, query: b, min: 1}]}}", "", []string{"spec.metrics.queries[1].name", "twice"}},
		"CheckNoQuery":       {"{image: x, metrics: {queries: [{name: a, min: 1}]}}", "", []string{"spec.metrics.queries[0].query", "missing"}},
		"CheckNoBound":       {"{image: x, metrics: {queries: [{name: a, query: b}]}}", "", []string{"spec.metrics.queries[0]", "min, max"}},
		"CheckBounds":        {"{image: x, metrics: {queries: [{name: a, query: b, min: 2, max: 1.5}]}}", "", []string{"spec.metrics.queries[0].min", "2", "above max"}},
		"ProbePath":          {"{image: x, probes: {path: a}}", "", []string{"spec.probes.path", `"a"`}},
		"StartupSeconds":     {"{image: x, probes: {startupSeconds: 9}}", "", []string{"spec.probes.startupSeconds", "10 to 7200"}},
		"WarmUpPath":         {"{image: x, probes: {warmUp: {}}}", "", []string{"spec.probes.warmUp.path", "missing"}},
		"WarmUpRequests":     {"{image: x, probes: {warmUp: {path: /, requests: 0}}}", "", []string{"spec.probes.warmUp.requests", "10000"}},
		"WarmUpType":         {"{image: x, probes: {warmUp: {path: /, contentType: json}}}", "", []string{"spec.probes.warmUp.contentType", `"json"`}},
		"WarmUpBody":         {"{image: x, probes: {warmUp: {path: /, body: " + strings.Repeat("ä", 16385) + "}}}", "", []string{"spec.probes.warmUp.body", "16385 characters"}},
		"WarmUpPort":         {"{image: x, port: 9901, probes: {warmUp: {path: /}}}", "", []string{"spec.port", "9901", "spec.probes.warmUp"}},
		"WarmUpMetricsPort":  {"{image: x, metrics: {port: 9901}, probes: {warmUp: {path: /}}}", "", []string{"spec.metrics.port", "9901"}},
		"NoGateway":          {"{image: x, route: {}}", "", []string{"spec.route.gateway", "name and namespace", "algorithm.gateway"}},
		"RouteHost":          {"{image: x, route: {host: A, gateway: {name: a}}}", "", []string{"spec.route.host", `"A"`}},
		"RoutePath":          {"{image: x, route: {path: a//b, gateway: {name: a}}}", "", []string{"spec.route.path", `"a//b"`, "'//'"}},
		"RouteTimeout":       {"{image: x, route: {timeout: 2h, gateway: {name: a}}}", "", []string{"spec.route.timeout", "2h", "1ms to 1h"}},
		"RouteTimeoutText":   {"{image: x, route: {timeout: 5}}", "", []string{"spec.route.timeout", "5", "for instance 2s"}},
		"GatewayName":        {"{image: x, route: {gateway: {name: A, namespace: B, sectionName: C}}}", "", []string{"spec.route.gateway.name", "spec.route.gateway.namespace", "spec.route.gateway.sectionName"}},
		"AccessNamespace":    {"{image: x, access: [{namespace: a*}]}", "", []string{"spec.access[0].namespace", `"a*"`}},
		"AccessLabel":        {"{image: x, access: [{podLabels: {a b: c d}}]}", "", []string{"spec.access[0].podLabels", "[a b]", `"c d"`}},
		"Drain":              {"{image: x, availability: {drainSeconds: 0}}", "", []string{"spec.availability.drainSeconds", "3600"}},
		"History":            {"{image: x, revisionHistoryLimit: 11}", "", []string{"spec.revisionHistoryLimit", "11", "0 to 10"}},
		"Empty":              {"{}", "", []string{"spec.image"}},
		"Several":            {"{image: x, replicas: -1, port: 0}", "", []string{"spec.replicas", "spec.port"}},
		"Many": {
			"{image: '', replicas: -1, port: 0, pod: {securityContext: {runAsUser: 0}, serviceAccountName: A}, env: [{name: 1A}, {name: 2A}]}", "",
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

// TestPlatformChanges shows that what the platform no longer offers costs nobody what runs: it stays as it is, and is told of.
func TestPlatformChanges(t *testing.T) {
	w := newWorld(t, "{image: x, route: {}}").platform()
	w.request.Settings.Algorithm.Gateway = &v1alpha1.GatewayReference{Name: "shared", Namespace: "gateway"}
	w.compose(w.plan())
	w.compose(w.plan())
	w.run(nil)
	w.request.Settings.Algorithm.Gateway = nil
	p := w.plan()
	before := w.request.Observed
	w.compose(p)
	if diff := cmp.Diff(before, w.request.Observed); diff != "" {
		t.Errorf("what runs changes: -before, +after:\n%s", diff)
	}
	if c := condition(p, v1alpha1.TypeAccepted); c.Status != "False" || !strings.Contains(c.Message, "spec.route.gateway") {
		t.Errorf("Accepted: %s %q", c.Status, c.Message)
	}
}
