// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	apisv1alpha1 "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/edge"
	"github.com/capstan-dev/capstan/function/memo"
	"github.com/capstan-dev/capstan/function/settings"
	"github.com/capstan-dev/capstan/input/v1alpha1"
	"github.com/capstan-dev/capstan/internal/runbook"
)

// input of the function with fields.
func input(fields map[string]any) func(*fnv1.RunFunctionRequest) {
	return func(req *fnv1.RunFunctionRequest) {
		m := map[string]any{"apiVersion": settings.InputAPIVersion, "kind": settings.InputKind, "metadata": map[string]any{"name": "x"}}
		maps.Copy(m, fields)
		req.Input = structFrom(m)
	}
}

// environment is the EnvironmentConfig with data.
func environment(data map[string]any) func(*fnv1.RunFunctionRequest) {
	return func(req *fnv1.RunFunctionRequest) {
		req.RequiredResources = map[string]*fnv1.Resources{requiredSettings: {Items: []*fnv1.Resource{
			resourceOf(map[string]any{"metadata": map[string]any{"name": settings.Name}, "data": data}),
		}}}
	}
}

func settingsFor(fields map[string]any) map[string]any { return map[string]any{"algorithm": fields} }

func TestSettingsOf(t *testing.T) {
	type want struct {
		cpu, memory string
		mistakes    string
	}
	cases := map[string]struct {
		reason string
		req    *fnv1.RunFunctionRequest
		want   want
	}{
		"Defaults": {
			reason: "Without input and EnvironmentConfig the defaults should hold.",
			req:    request(),
			want:   want{cpu: "250m", memory: "256Mi"},
		},
		"NotFound": {
			reason: "An EnvironmentConfig that Crossplane did not find should change nothing.",
			req: request(func(req *fnv1.RunFunctionRequest) {
				req.RequiredResources = map[string]*fnv1.Resources{requiredSettings: nil}
			}),
			want: want{cpu: "250m", memory: "256Mi"},
		},
		"FieldByField": {
			reason: "The EnvironmentConfig should win over the input and it over the defaults, field by field.",
			req: request(
				input(settingsFor(map[string]any{"cpu": "1", "memory": "1Gi"})),
				environment(settingsFor(map[string]any{"cpu": "2", "memory": nil})),
			),
			want: want{cpu: "2", memory: "1Gi"},
		},
		"Number": {
			reason: "A quantity may be a number.",
			req:    request(environment(settingsFor(map[string]any{"cpu": 2}))),
			want:   want{cpu: "2", memory: "256Mi"},
		},
		"UnknownField": {
			reason: "A field that does not exist should be named, and cost nothing but itself.",
			req:    request(input(settingsFor(map[string]any{"cup": "1", "memory": "1Gi"}))),
			want: want{
				cpu: "250m", memory: "1Gi",
				mistakes: `input of function-capstan: algorithm.cup: cannot use "1": unknown field "algorithm.cup"`,
			},
		},
		"EmptyUnknownField": {
			reason: "Also a field without content that does not exist should be named.",
			req:    request(environment(map[string]any{"queue": map[string]any{}})),
			want: want{
				cpu: "250m", memory: "256Mi",
				mistakes: `EnvironmentConfig "capstan": queue: cannot use "map[]": unknown field "queue"`,
			},
		},
		"NoQuantity": {
			reason: "A value that is no quantity should be told with its path, and the value from before stand.",
			req: request(
				input(settingsFor(map[string]any{"cpu": "1"})),
				environment(settingsFor(map[string]any{"cpu": "fast", "memory": "1Gi"})),
			),
			want: want{
				cpu: "1", memory: "1Gi",
				mistakes: `EnvironmentConfig "capstan": algorithm.cpu: cannot use "fast": quantities must match the regular ` +
					`expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
			},
		},
		"NotPositive": {
			reason: "Nothing should be run with no memory.",
			req:    request(environment(settingsFor(map[string]any{"memory": "-1Gi"}))),
			want: want{
				cpu: "250m", memory: "256Mi",
				mistakes: `EnvironmentConfig "capstan": algorithm.memory: cannot use "-1Gi": must be greater than zero`,
			},
		},
		"WrongKind": {
			reason: "An input of another type should be told.",
			req: request(func(req *fnv1.RunFunctionRequest) {
				req.Input = structFrom(map[string]any{"apiVersion": "example.org/v1", "kind": "Resources"})
			}),
			want: want{
				cpu: "250m", memory: "256Mi",
				mistakes: `input of function-capstan: cannot use apiVersion "example.org/v1" and kind "Resources": must be ` +
					`capstan.dev/v1alpha1 Settings`,
			},
		},
		"ManyMistakes": {
			reason: "Only so many mistakes should be told as a person reads.",
			req:    request(environment(map[string]any{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5})),
			want: want{
				cpu: "250m", memory: "256Mi",
				mistakes: `EnvironmentConfig "capstan": a: cannot use "1": unknown field "a"; ` +
					`EnvironmentConfig "capstan": b: cannot use "2": unknown field "b"; ` +
					`EnvironmentConfig "capstan": c: cannot use "3": unknown field "c"; 2 more`,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := settingsOf(received(t, tc.req))
			got := want{cpu: s.Algorithm.CPU.String(), memory: s.Algorithm.Memory.String()}
			if err != nil {
				got.mistakes = err.Error()
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\nsettingsOf(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSettingsOfAlgorithm looks at what is decided for Algorithms beside CPU and memory.
func TestSettingsOfAlgorithm(t *testing.T) {
	fields := func(name string, value any) map[string]any { return settingsFor(map[string]any{name: value}) }
	cases := map[string]struct {
		reason   string
		req      *fnv1.RunFunctionRequest
		want     func(*v1alpha1.AlgorithmSettings)
		mistakes string
	}{
		"Defaults": {
			reason: "Without anything the defaults should hold, and the companion be that of the function's version.",
			req:    request(),
			want: func(a *v1alpha1.AlgorithmSettings) {
				a.CompanionImage = "ghcr.io/capstan-dev/companion:dev"
				a.Prometheus = &xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "prometheus"}
				a.MLflow = &xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "mlflow"}
				a.MetricsNamespaces = []string{"monitoring"}
			},
		},
		"Companion": {
			reason: "A mirror should be used.",
			req:    request(environment(fields("companionImage", "mirror.example.org/companion@sha256:0"))),
			want:   func(a *v1alpha1.AlgorithmSettings) { a.CompanionImage = "mirror.example.org/companion@sha256:0" },
		},
		"CompanionOfAMirror": {
			reason: "An image without a tag should be that of the function's version, so that an upgrade upgrades it, too.",
			req:    request(environment(fields("companionImage", "mirror.example.org:5000/capstan-dev/companion"))),
			want: func(a *v1alpha1.AlgorithmSettings) {
				a.CompanionImage = "mirror.example.org:5000/capstan-dev/companion:dev"
			},
		},
		"NoCompanion": {
			reason:   "Models could not be fetched by no image.",
			req:      request(environment(fields("companionImage", ""))),
			mistakes: `EnvironmentConfig "capstan": algorithm.companionImage: cannot use "": must name an image, without white space`,
		},
		"ModelImages": {
			reason: "Nodes that mount no images should be possible.",
			req:    request(environment(fields("modelImages", "InitContainer"))),
			want:   func(a *v1alpha1.AlgorithmSettings) { a.ModelImages = apisv1alpha1.DeliverInitContainer },
		},
		"ModelImagesOtherwise": {
			reason:   "There is no third way.",
			req:      request(environment(fields("modelImages", "Copy"))),
			mistakes: `EnvironmentConfig "capstan": algorithm.modelImages: cannot use "Copy": must be ImageVolume or InitContainer`,
		},
		"Gateway": {
			reason: "Its fields may come from several sources.",
			req: request(
				input(fields("gateway", map[string]any{"name": "shared", "namespace": "gateway"})),
				environment(fields("gateway", map[string]any{"name": "other", "sectionName": "web"})),
			),
			want: func(a *v1alpha1.AlgorithmSettings) {
				a.Gateway = &apisv1alpha1.GatewayReference{Name: "other", Namespace: "gateway", SectionName: "web"}
			},
		},
		"GatewayInTwoParts": {
			reason: "A part may come before its name.",
			req: request(
				input(fields("gateway", map[string]any{"namespace": "gateway"})),
				environment(fields("gateway", map[string]any{"name": "shared"})),
			),
			want: func(a *v1alpha1.AlgorithmSettings) {
				a.Gateway = &apisv1alpha1.GatewayReference{Name: "shared", Namespace: "gateway"}
			},
		},
		"GatewayWithoutName": {
			reason: "A namespace is no Gateway, and the mistake should cost the Gateway alone.",
			req: request(environment(settingsFor(map[string]any{
				"gateway": map[string]any{"namespace": "gateway"}, "metricsNamespaces": []any{"prometheus"},
			}))),
			want:     func(a *v1alpha1.AlgorithmSettings) { a.MetricsNamespaces = []string{"prometheus"} },
			mistakes: "algorithm.gateway.name: is missing beside the rest of algorithm.gateway: add it, or remove algorithm.gateway",
		},
		"GatewayAsText": {
			reason: "What is no object should be told.",
			req:    request(environment(fields("gateway", "shared"))),
			mistakes: `EnvironmentConfig "capstan": algorithm.gateway: cannot use "shared": json: cannot unmarshal string into Go ` +
				`struct field AlgorithmSettings.algorithm.gateway of type v1alpha1.GatewayReference`,
		},
		"GatewayNamespace": {
			reason:   "A bad name should cost that field.",
			req:      request(environment(fields("gateway", map[string]any{"name": "shared", "namespace": "a.b"}))),
			want:     func(a *v1alpha1.AlgorithmSettings) { a.Gateway = &apisv1alpha1.GatewayReference{Name: "shared"} },
			mistakes: `EnvironmentConfig "capstan": algorithm.gateway.namespace: cannot use "a.b": must not contain dots`,
		},
		"Namespaces": {
			reason: "A list should be taken whole, and * stand for everybody.",
			req: request(
				input(settingsFor(map[string]any{"gatewayNamespaces": []any{"a", "b"}, "metricsNamespaces": []any{"c"}})),
				environment(settingsFor(map[string]any{"gatewayNamespaces": []any{"*"}, "metricsNamespaces": []any{}})),
			),
			want: func(a *v1alpha1.AlgorithmSettings) {
				a.GatewayNamespaces, a.MetricsNamespaces = []string{"*"}, []string{}
			},
		},
		"BadNamespace": {
			reason:   "A pattern should be told, and the default stand.",
			req:      request(environment(fields("metricsNamespaces", []any{"mon*"}))),
			mistakes: `EnvironmentConfig "capstan": algorithm.metricsNamespaces: cannot use "[mon*]": "mon*" is neither * nor the name of a namespace: `,
		},
		"Configs": {
			reason: "A kind should be changed without the name.",
			req: request(environment(settingsFor(map[string]any{
				"prometheus": map[string]any{"kind": "ProviderConfig"}, "mlflow": map[string]any{"name": "registry"},
			}))),
			want: func(a *v1alpha1.AlgorithmSettings) {
				a.Prometheus = &xpv2.ProviderConfigReference{Kind: "ProviderConfig", Name: "prometheus"}
				a.MLflow = &xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "registry"}
			},
		},
		"BadKind": {
			reason:   "The kinds should be named.",
			req:      request(environment(fields("prometheus", map[string]any{"kind": "Secret"}))),
			mistakes: `EnvironmentConfig "capstan": algorithm.prometheus.kind: cannot use "Secret": must be ClusterProviderConfig or ProviderConfig`,
		},
		"BadConfigName": {
			reason:   "A bad name should be told.",
			req:      request(environment(fields("mlflow", map[string]any{"name": "A"}))),
			mistakes: `EnvironmentConfig "capstan": algorithm.mlflow.name: cannot use "A": a lowercase RFC 1123 subdomain must consist of`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := settingsOf(received(t, tc.req))
			want := settings.Defaults()
			want.Algorithm.CompanionImage += ":dev"
			if tc.want != nil {
				tc.want(&want.Algorithm)
			}
			if diff := cmp.Diff(*want, got); diff != "" {
				t.Errorf("%s\nsettingsOf(...): -want, +got:\n%s", tc.reason, diff)
			}
			told := ""
			if err != nil {
				told = err.Error()
			}
			if !strings.HasPrefix(told, tc.mistakes) || tc.mistakes == "" && told != "" {
				t.Errorf("%s\nsettingsOf(...): want mistakes %q, got %q", tc.reason, tc.mistakes, told)
			}
		})
	}
}

func TestSettingsOfDatabase(t *testing.T) {
	database := func(fields map[string]any) *fnv1.RunFunctionRequest {
		return request(environment(map[string]any{"database": fields}))
	}
	plan := func(memory string) []any {
		return []any{map[string]any{"name": "default", "cpu": "1", "memory": memory}}
	}
	cases := map[string]struct {
		reason string
		req    *fnv1.RunFunctionRequest
		change func(*v1alpha1.DatabaseSettings)
		want   string
	}{
		"Defaults": {
			reason: "Without settings there are plans and our image.",
			req:    request(),
		},
		"Image": {
			reason: "A repository without a tag stays without one: the planner adds that of the function's version.",
			req:    database(map[string]any{"image": "registry.example.org/capstan-dev/postgres"}),
			change: func(d *v1alpha1.DatabaseSettings) { d.Image = "registry.example.org/capstan-dev/postgres" },
		},
		"Plans": {
			reason: "Plans of the platform replace ours.",
			req:    database(map[string]any{"plans": plan("2Gi")}),
			change: func(d *v1alpha1.DatabaseSettings) {
				d.Plans = []v1alpha1.DatabasePlan{{Name: "default", CPU: resource.MustParse("1"), Memory: resource.MustParse("2Gi")}}
			},
		},
		"TooLittleMemory": {
			reason: "A plan without room for a server is told of, and ours stay.",
			req:    database(map[string]any{"plans": plan("64Mi")}),
			want:   `plan "default": cpu must be greater than zero, and memory at least 256Mi`,
		},
		"Issuer": {
			reason: "An issuer is a ClusterIssuer unless it says otherwise.",
			req:    database(map[string]any{"issuerRef": map[string]any{"name": "company"}}),
			change: func(d *v1alpha1.DatabaseSettings) {
				d.IssuerRef = &apisv1alpha1.IssuerReference{Kind: "ClusterIssuer", Name: "company"}
			},
		},
		"IssuerWithoutName": {
			reason: "An issuer without a name is none.",
			req:    database(map[string]any{"issuerRef": map[string]any{"kind": "Issuer"}}),
			want:   "database.issuerRef.name: is missing beside the rest of database.issuerRef: add it, or remove database.issuerRef",
		},
		"BackupToVolume": {
			reason: "A platform without object storage says so.",
			req:    database(map[string]any{"backup": map[string]any{"to": "Volume", "storageClassName": "archive"}}),
			change: func(d *v1alpha1.DatabaseSettings) {
				d.Backup = v1alpha1.DatabaseBackupSettings{To: v1alpha1.BackupToVolume, StorageClassName: "archive"}
			},
		},
		"BackupElsewhere": {
			reason: "There is no third place, and the default stays.",
			req:    database(map[string]any{"backup": map[string]any{"to": "Tape"}}),
			want:   `database.backup.to: cannot use "Tape": must be Bucket or Volume`,
		},
		"BackupClass": {
			reason: "A class is an object's name.",
			req:    database(map[string]any{"backup": map[string]any{"storageClassName": "Fast SSD"}}),
			want:   "database.backup.storageClassName: cannot use",
		},
		"BackupRate": {
			reason: "A platform knows what its slowest backups reach.",
			req:    database(map[string]any{"backup": map[string]any{"leastRate": "200Mi"}}),
			change: func(d *v1alpha1.DatabaseSettings) {
				d.Backup = v1alpha1.DatabaseBackupSettings{LeastRate: new(resource.MustParse("200Mi"))}
			},
		},
		"BackupRateInMilli": {
			reason: "What nobody means would make deadlines of years.",
			req:    database(map[string]any{"backup": map[string]any{"leastRate": "20m"}}),
			want:   `database.backup.leastRate: cannot use "20m": leastRate must be from 1Mi to 10Gi, in bytes per second`,
		},
		"ImageWithoutVersions": {
			reason: "An image that says nothing of its versions could not be chosen.",
			req:    database(map[string]any{"images": []any{map[string]any{"image": "x"}}}),
			want:   `image "x" has no versions: list those that are in it`,
		},
		"OddVersion": {
			reason: "A version is a number.",
			req: database(map[string]any{"images": []any{map[string]any{
				"image": "x", "versions": []any{map[string]any{"version": "latest"}},
			}}}),
			want: `version "latest" must be a major version of at least 15, for instance "17"`,
		},
		"OtherEngine": {
			reason: "The engine of an image checks its versions, and one that does not exist checks none.",
			req: database(map[string]any{"images": []any{map[string]any{
				"image": "x", "engine": "oracle", "versions": []any{map[string]any{"version": "17"}},
			}}}),
			want: `engine "oracle" is unknown: use one of [mysql postgres]`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := settingsOf(received(t, tc.req))
			want := settings.Defaults().Database
			if tc.change != nil {
				tc.change(&want)
			}
			if diff := cmp.Diff(want, got.Database); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			message := ""
			if err != nil {
				message = err.Error()
			}
			if !strings.Contains(message, tc.want) || tc.want == "" && message != "" {
				t.Errorf("%s: want %q, got %q", tc.reason, tc.want, message)
			}
		})
	}
}

func TestGPUSettings(t *testing.T) {
	cases := map[string]struct {
		reason      string
		gpu         map[string]any
		cpu, memory string
		mistake     string
	}{
		"Defaults": {reason: "A GPU needs more than the usual CPU and memory.", cpu: "1", memory: "4Gi"},
		"Set":      {reason: "A field that is not set keeps its default.", gpu: map[string]any{"cpu": "8"}, cpu: "8", memory: "4Gi"},
		"Zero":     {reason: "Nothing runs with no memory.", gpu: map[string]any{"memory": "0"}, cpu: "1", memory: "4Gi", mistake: "algorithm.gpu.memory"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := settingsOf(received(t, request(environment(settingsFor(map[string]any{"gpu": tc.gpu})))))
			if (err != nil) != (tc.mistake != "") || err != nil && !strings.Contains(err.Error(), tc.mistake) {
				t.Errorf("%s\nsettingsOf(…): want a mistake about %q, got %v", tc.reason, tc.mistake, err)
			}
			if got := s.Algorithm.GPU; got.CPU.String() != tc.cpu || got.Memory.String() != tc.memory {
				t.Errorf("%s\nwant %s and %s, got %s and %s", tc.reason, tc.cpu, tc.memory, got.CPU, got.Memory)
			}
		})
	}
}

func TestPodSettings(t *testing.T) {
	cases := map[string]struct {
		reason  string
		volumes []any
		want    []v1alpha1.PodVolumeKind
		mistake string
	}{
		"Defaults": {reason: "Kinds that stay within the namespace are allowed.", want: v1alpha1.UsualPodVolumes()},
		"Set":      {reason: "The list of the platform is the list.", volumes: []any{"secret", "csi"}, want: []v1alpha1.PodVolumeKind{"secret", "csi"}},
		"None":     {reason: "An empty list allows none.", volumes: []any{}, want: []v1alpha1.PodVolumeKind{}},
		"HostPath": {
			reason: "No setting allows what restricted pods cannot have.", volumes: []any{"hostPath"}, want: v1alpha1.UsualPodVolumes(),
			mistake: "algorithm.pod.volumes",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			algorithm := map[string]any{}
			if tc.volumes != nil {
				algorithm["pod"] = map[string]any{"volumes": tc.volumes}
			}
			s, err := settingsOf(received(t, request(environment(settingsFor(algorithm)))))
			if (err != nil) != (tc.mistake != "") || err != nil && !strings.Contains(err.Error(), tc.mistake) {
				t.Errorf("%s\nsettingsOf(…): want a mistake about %q, got %v", tc.reason, tc.mistake, err)
			}
			if diff := cmp.Diff(tc.want, s.Algorithm.Pod.Volumes); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMemo expects the same settings as without a memory, also after other requests and after changes of what was returned.
func TestMemo(t *testing.T) {
	reqs := []*fnv1.RunFunctionRequest{
		request(), request(environment(nil)), request(input(nil)),
		request(input(settingsFor(map[string]any{"cpu": "3"})), environment(settingsFor(map[string]any{"cpu": "fast"}))),
		request(environment(settingsFor(map[string]any{"companionImage": strings.Repeat("x", maxSettings)}))),
	}
	for i := range 20 {
		reqs = append(reqs, request(environment(settingsFor(map[string]any{"cpu": i + 1}))))
	}
	m := memo.New[remembered](1 << 10)
	for range 3 {
		for i, req := range reqs {
			want, wantErr := settingsOf(received(t, req))
			got, err := remember(m, received(t, req))
			if diff := cmp.Diff(want, got); diff != "" || fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Errorf("request %d: want error %v, got %v: -want, +got:\n%s", i, wantErr, err, diff)
			}
			got.Algorithm.CPU.Add(*got.Algorithm.CPU)
			got.Algorithm.MetricsNamespaces[0] = "changed"
		}
	}
}

// BenchmarkSettings that are read each time, and remembered.
func BenchmarkSettings(b *testing.B) {
	req := received(b, request(
		input(settingsFor(map[string]any{"cpu": "1", "memory": "1Gi", "gpu": map[string]any{"cpu": "2"}})),
		environment(map[string]any{
			"algorithm": map[string]any{
				"companionImage": "mirror.example.org/companion", "metricsNamespaces": []any{"monitoring"},
				"gateway": map[string]any{"name": "shared", "namespace": "gateway"},
				"mlflow":  map[string]any{"kind": "ClusterProviderConfig", "name": "registry"},
			},
			"database": map[string]any{
				"image": "mirror.example.org/postgres", "metricsNamespaces": []any{"monitoring"},
				"issuerRef": map[string]any{"name": "platform"}, "backup": map[string]any{"to": "Bucket"},
			},
		}),
	))
	m := memo.New[remembered](maxSettings)
	for name, settings := range map[string]func(*edge.Request) (v1alpha1.Settings, error){"Read": settingsOf, "Remembered": func(req *edge.Request) (v1alpha1.Settings, error) { return remember(m, req) }} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := settings(req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestAllowedSettings(t *testing.T) {
	list := func(name any) []any { return []any{map[string]any{"name": name}} }
	cases := map[string]struct {
		reason  string
		allowed map[string]any
		want    v1alpha1.AllowedToAlgorithms
		mistake string
	}{
		"Unset": {reason: "Without lists everything is allowed."},
		"Set": {
			reason: "The list of the platform is the list.", allowed: map[string]any{"priorityClasses": list("batch")},
			want: v1alpha1.AllowedToAlgorithms{PriorityClasses: []v1alpha1.Allowed{{Name: "batch"}}},
		},
		"Empty": {
			reason: "An empty list allows nothing, and is not taken for one that is not set.", allowed: map[string]any{"hosts": []any{}},
			want: v1alpha1.AllowedToAlgorithms{Hosts: []v1alpha1.Allowed{}},
		},
		"Mistake": {reason: "A name that cannot match is a mistake.", allowed: map[string]any{"hosts": list("a.*.b")}, mistake: "algorithm.allowed.hosts"},
		"Unknown": {reason: "An unknown list is a mistake.", allowed: map[string]any{"nodes": list("a")}, mistake: "algorithm.allowed.nodes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := settingsOf(received(t, request(environment(settingsFor(map[string]any{"allowed": tc.allowed})))))
			if (err != nil) != (tc.mistake != "") || err != nil && !strings.Contains(err.Error(), tc.mistake) {
				t.Errorf("%s\nsettingsOf(…): want a mistake about %q, got %v", tc.reason, tc.mistake, err)
			}
			if diff := cmp.Diff(tc.want, s.Algorithm.Allowed); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	db := map[string]any{"database": map[string]any{"allowed": map[string]any{"issuers": list("platform")}}}
	if _, err := settingsOf(received(t, request(environment(db)))); err == nil || !strings.Contains(err.Error(), "database.allowed.issuers") {
		t.Errorf("an issuer without its kind is a mistake, got %v", err)
	}
}

// TestSettingsAreMissed holds the function to this: settings that were there when objects were composed are not replaced by
// defaults when they are gone.
func TestSettingsAreMissed(t *testing.T) {
	image := settingsFor(map[string]any{"companionImage": "registry.example.org/companion:v1", "cpu": "1"})
	withSettings := func(req *fnv1.RunFunctionRequest) *fnv1.RunFunctionRequest {
		req = proto.CloneOf(req)
		environment(image)(req)
		return req
	}
	without := func(req *fnv1.RunFunctionRequest) *fnv1.RunFunctionRequest {
		req = proto.CloneOf(req)
		req.RequiredResources = map[string]*fnv1.Resources{requiredSettings: nil}
		return req
	}
	f := newFunction(kinds(), func() time.Time { return now })
	database := proto.CloneOf(basic())
	database.Observed.Composite = resourceOf(map[string]any{
		"apiVersion": "capstan.dev/v1alpha1", "kind": "Database",
		"metadata": map[string]any{"namespace": "demo", "name": "orders-db"},
		"spec":     map[string]any{"engine": "postgres", "version": "17", "replicas": 3, "storage": "10Gi"},
	})
	for kind, req := range map[string]*fnv1.RunFunctionRequest{"Algorithm": basic(), "Database": database} {
		t.Run(kind, func(t *testing.T) {
			composed := applied(t, f, withSettings(req))
			missed := run(t, f, without(composed))
			for name, o := range received(t, composed).Observed {
				before := compose.Keep(o)
				if diff := cmp.Diff(before, missed.GetDesired().GetResources()[name].GetResource().AsMap()); diff != "" {
					t.Errorf("%s changes when the settings are gone: -observed, +desired:\n%s", name, diff)
				}
			}
			accepted := conditionOf(missed, apisv1alpha1.TypeAccepted)
			if accepted.GetStatus() != fnv1.Status_STATUS_CONDITION_FALSE || accepted.GetReason() != string(apisv1alpha1.ReasonInvalidSettings) {
				t.Errorf("Accepted: got %s %s", accepted.GetStatus(), accepted.GetReason())
			}
			for _, part := range []string{settings.SourceEnvironment, "does not exist", "apply it again", "with no data for the defaults"} {
				if !strings.Contains(accepted.GetMessage(), part) {
					t.Errorf("Accepted: want %q in %q", part, accepted.GetMessage())
				}
			}
			// Settings without data are settings, and the way to the defaults.
			empty := proto.CloneOf(composed)
			environment(nil)(empty)
			if c := conditionOf(run(t, f, empty), apisv1alpha1.TypeAccepted); c.GetStatus() != fnv1.Status_STATUS_CONDITION_TRUE {
				t.Errorf("with settings that have no data: %s %q", c.GetStatus(), c.GetMessage())
			}
			// What was composed without settings goes on without them, and what is new begins without.
			if c := conditionOf(run(t, f, without(applied(t, f, without(req)))), apisv1alpha1.TypeAccepted); c.GetStatus() != fnv1.Status_STATUS_CONDITION_TRUE {
				t.Errorf("an installation without settings: %s %q", c.GetStatus(), c.GetMessage())
			}
		})
	}
}

// conditionOf a response.
func conditionOf(rsp *fnv1.RunFunctionResponse, kind xpv2.ConditionType) *fnv1.Condition {
	for _, c := range rsp.GetConditions() {
		if c.GetType() == string(kind) {
			return c
		}
	}
	return nil
}

func TestSettingsOfAlerts(t *testing.T) {
	cases := map[string]struct {
		reason   string
		page     string
		want     string
		mistakes string
	}{
		"Own":      {reason: "A platform team should lead alerts to its own page.", page: "https://wiki.example.org/capstan", want: "https://wiki.example.org/capstan"},
		"Relative": {reason: "A link of an alert needs a host.", page: "docs/alerts.md", want: runbook.Page, mistakes: "must be an http or https URL without #"},
		"Fragment": {reason: "The alert's name comes behind #.", page: "https://wiki.example.org/#capstan", want: runbook.Page, mistakes: "must be an http or https URL without #"},
		"Script":   {reason: "A link that people click should not be a program.", page: "javascript:alert(1)", want: runbook.Page, mistakes: "must be an http or https URL without #"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := settingsOf(received(t, request(environment(map[string]any{"alerts": map[string]any{"runbookPage": tc.page}}))))
			if (err == nil) != (tc.mistakes == "") || err != nil && !strings.Contains(err.Error(), tc.mistakes) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.mistakes, err)
			}
			if s.Alerts.RunbookPage != tc.want {
				t.Errorf("%s: want %q, got %q", tc.reason, tc.want, s.Alerts.RunbookPage)
			}
		})
	}
}

func TestSettingsOfTraining(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		fields   map[string]any
		want     v1alpha1.TrainingSettings
		mistakes string
	}{
		"None": {reason: "Without settings there are no limits."},
		"All": {
			reason: "A platform can limit size, time and queues.",
			fields: map[string]any{"maxWorkers": 8, "maxGPUs": 0, "maxDeadline": "72h", "allowed": map[string]any{"queues": []any{map[string]any{"name": "batch"}}}},
			want: v1alpha1.TrainingSettings{
				MaxWorkers: new(int32(8)), MaxGPUs: new(int32(0)), MaxDeadline: &metav1.Duration{Duration: 72 * time.Hour},
				Allowed: v1alpha1.AllowedToTrainings{Queues: []v1alpha1.Allowed{{Name: "batch"}}},
			},
		},
		"NoWorkers": {
			reason: "A Training has at least one worker.", fields: map[string]any{"maxWorkers": 0},
			mistakes: `EnvironmentConfig "capstan": training.maxWorkers: cannot use "0": must be at least 1`,
		},
		"Negative": {
			reason: "There is no such number of GPUs.", fields: map[string]any{"maxGPUs": -1},
			mistakes: `EnvironmentConfig "capstan": training.maxGPUs: cannot use "-1": must be at least 0`,
		},
		"Moment": {
			reason: "No Training could have such a deadline.", fields: map[string]any{"maxDeadline": "1s"},
			mistakes: `EnvironmentConfig "capstan": training.maxDeadline: cannot use "1s": must be a time from 1m to 8760h`,
		},
		"QueueName": {
			reason: "No queue has such a name.", fields: map[string]any{"allowed": map[string]any{"queues": []any{map[string]any{"name": "A B"}}}},
			mistakes: `EnvironmentConfig "capstan": training.allowed.queues: cannot use "[map[name:A B]]": "A B": a lowercase RFC 1123 subdomain`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := settingsOf(received(t, request(environment(map[string]any{"training": tc.fields}))))
			if (err == nil) != (tc.mistakes == "") || err != nil && !strings.HasPrefix(err.Error(), tc.mistakes) {
				t.Errorf("%s: want mistakes %q, got %v", tc.reason, tc.mistakes, err)
			}
			if diff := cmp.Diff(tc.want, got.Training); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPreviewSettings(t *testing.T) {
	cases := map[string]struct {
		reason string
		data   map[string]any
		want   string
	}{
		"Usual":     {"What can be used is used.", map[string]any{"domain": "preview.example.org", "scheme": "http", "maxTTL": "168h"}, ""},
		"Domain":    {"It is a part of host names.", map[string]any{"domain": "https://example.org"}, `preview.domain: cannot use "https://example.org"`},
		"Scheme":    {"It is one of two.", map[string]any{"scheme": "ftp"}, `preview.scheme: cannot use "ftp": must be http or https`},
		"Too short": {"A Preview could not have any ttl.", map[string]any{"maxTTL": "1m"}, `preview.maxTTL: cannot use "1m": must be at least 5m, the shortest spec.ttl of a Preview`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := settingsOf(received(t, request(environment(map[string]any{"preview": tc.data}))))
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s want %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}
