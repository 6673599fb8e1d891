// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// providerConfig is a ProviderConfig or ClusterProviderConfig with this spec.
func providerConfig(t *testing.T, kind, spec string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &values); err != nil {
		t.Fatalf("bad YAML in a test: %v", err)
	}
	metadata := map[string]any{"name": "s3"}
	if kind == "ProviderConfig" {
		metadata["namespace"] = "shop"
	}
	return map[string]any{
		"apiVersion": "capstan.dev/v1alpha1",
		"kind":       kind,
		"metadata":   metadata,
		"spec":       whole(values),
	}
}

func TestConfig(t *testing.T) {
	const (
		own    = "ProviderConfig"
		shared = "ClusterProviderConfig"
		key    = `credentials: {secretRef: {name: s3}}`
	)
	configs := map[string]admission{
		own:    newAdmission(t, readCRD(t, "package/provider/crds/capstan.dev_providerconfigs.yaml")),
		shared: newAdmission(t, readCRD(t, "package/provider/crds/capstan.dev_clusterproviderconfigs.yaml")),
	}

	cases := map[string]struct {
		reason string
		kind   string
		spec   string
		// want is part of the one error, or nothing when it is accepted.
		want string
	}{
		"Amazon":        {reason: "Without an endpoint it is Amazon's.", kind: own, spec: `s3: {` + key + `}`},
		"Endpoint":      {reason: "Any server, any port, any path.", kind: own, spec: `s3: {endpoint: "https://s3.example.org:9000/base", ` + key + `}`},
		"PlainHTTP":     {reason: "Inside a cluster there may be no TLS.", kind: own, spec: `s3: {endpoint: "http://minio.minio.svc:9000", ` + key + `}`},
		"IPv6":          {reason: "Addresses are hosts.", kind: own, spec: `s3: {endpoint: "https://[2001:db8::1]:9000", ` + key + `}`},
		"MLflow":        {reason: "MLflow may ask nobody who they are.", kind: own, spec: `mlflow: {url: "https://mlflow.example.org"}`},
		"MLflowBasic":   {reason: "Or want a user.", kind: own, spec: `mlflow: {url: "https://mlflow.example.org", credentials: {basic: {secretRef: {name: m}}}}`},
		"Prometheus":    {reason: "Or a token.", kind: own, spec: `prometheus: {url: "https://p.example.org/prom", credentials: {bearer: {secretRef: {name: m}}}}`},
		"Lineage":       {reason: "An API key is a token.", kind: shared, spec: `openLineage: {url: "https://l.example.org/base", jobNamespace: "prod-eu/{namespace}", credentials: {bearer: {secretRef: {name: l}}}}`},
		"LineageOfAll":  {reason: "Namespaces that share a server stay apart.", kind: shared, spec: `openLineage: {url: "https://l.example.org", jobNamespace: prod}`, want: "spec.openLineage.jobNamespace"},
		"LineagePlain":  {reason: "An API key is a secret.", kind: shared, spec: `openLineage: {url: "http://l.tools.svc", credentials: {bearer: {secretRef: {name: l}}}}`, want: "use https, or set credentials.allowPlaintext"},
		"LineageQuery":  {reason: "A base has no query.", kind: own, spec: `openLineage: {url: "https://l.example.org?x=y"}`, want: "without user, query and fragment"},
		"Retry":         {reason: "Waits may be longer.", kind: own, spec: `{s3: {` + key + `}, retry: {baseDelay: 5s, maxDelay: 10m}}`},
		"KeyEach":       {reason: "Each namespace may have a key of its own.", kind: shared, spec: `{s3: {` + key + `, workloadCredentials: {secretRef: {name: s3-workload}}, workloadKeyPerNamespace: true}}`},
		"KeyOfWhom":     {reason: "Keys of namespaces need the first part of their names.", kind: shared, spec: `{s3: {` + key + `, workloadKeyPerNamespace: true}}`, want: "needs workloadCredentials"},
		"Shared":        {reason: "The platform says who may use it.", kind: shared, spec: `{s3: {` + key + `, bucketPrefix: "prod-{namespace}-"}, allowedNamespaces: [shop, "team-*"], adoption: Unowned, secretsNamespace: platform}`},
		"NoPrefix":      {reason: "One who wants no prefix says so.", kind: shared, spec: `s3: {` + key + `, bucketPrefix: ""}`},
		"Nothing":       {reason: "A config of nothing is none.", kind: own, spec: `{}`, want: "exactly one of the fields in [s3 mlflow prometheus openLineage] must be set"},
		"Two":           {reason: "One config, one service.", kind: own, spec: `{s3: {` + key + `}, mlflow: {url: "https://m.example.org"}}`, want: "exactly one of the fields in [s3 mlflow prometheus openLineage] must be set"},
		"NoKey":         {reason: "The provider has no identity of its own to lend.", kind: own, spec: `s3: {endpoint: "https://s3.example.org"}`, want: "spec.s3.credentials: Required value"},
		"OtherPlace":    {reason: "A reference has no namespace.", kind: own, spec: `s3: {credentials: {secretRef: {name: s3, namespace: bank}}}`, want: `spec.s3.credentials.secretRef.namespace`},
		"OtherPath":     {reason: "A name is no path.", kind: own, spec: `s3: {credentials: {secretRef: {name: bank/s3}}}`, want: "spec.s3.credentials.secretRef.name"},
		"Scheme":        {reason: "Only HTTP is spoken.", kind: own, spec: `s3: {endpoint: "s3://bucket", ` + key + `}`, want: "endpoint: s3://bucket is not an http or https URL"},
		"User":          {reason: "A URL is no place for a password.", kind: own, spec: `mlflow: {url: "https://user:pw@m.example.org"}`, want: "without user"},
		"Query":         {reason: "A base has no query.", kind: own, spec: `prometheus: {url: "https://p.example.org?x=y"}`, want: "without user, query and fragment"},
		"BothWays":      {reason: "A request has one Authorization.", kind: own, spec: `mlflow: {url: "https://m.example.org", credentials: {basic: {secretRef: {name: a}}, bearer: {secretRef: {name: b}}}}`, want: "exactly one of the fields in [basic bearer] must be set"},
		"Plaintext":     {reason: "Over http everybody on the way reads a password.", kind: own, spec: `mlflow: {url: "http://m.tools.svc", credentials: {basic: {secretRef: {name: a}}}}`, want: "use https, or set credentials.allowPlaintext"},
		"PlainToken":    {reason: "So do they a token, with the scheme in capitals as well.", kind: shared, spec: `prometheus: {url: "HTTP://p.tools.svc", credentials: {bearer: {secretRef: {name: a}}}}`, want: "use https, or set credentials.allowPlaintext"},
		"PlainShared":   {reason: "A platform's password is no better.", kind: shared, spec: `prometheus: {url: "http://p.tools.svc", credentials: {bearer: {secretRef: {name: a}}}}`, want: "use https, or set credentials.allowPlaintext"},
		"Mesh":          {reason: "A mesh encrypts what looks plain.", kind: own, spec: `mlflow: {url: "http://m.tools.svc", credentials: {basic: {secretRef: {name: a}}, allowPlaintext: true}}`},
		"NothingToRead": {reason: "Without credentials there is nothing to read.", kind: own, spec: `prometheus: {url: "http://p.tools.svc"}`},
		"Bundle":        {reason: "A bundle holds certificates.", kind: own, spec: `s3: {` + key + `, caBundle: nonsense}`, want: "caBundle: must hold at least one certificate in PEM"},
		"Impatient":     {reason: "Nobody hammers a service that fails.", kind: own, spec: `{s3: {` + key + `}, retry: {baseDelay: 100ms}}`, want: "baseDelay: must be at least 1s"},
		"Backwards":     {reason: "Waits grow.", kind: own, spec: `{s3: {` + key + `}, retry: {baseDelay: 1m, maxDelay: 30s}}`, want: "retry: baseDelay must not be longer than maxDelay"},
		"BadPrefix":     {reason: "Buckets have no capitals.", kind: shared, spec: `s3: {` + key + `, bucketPrefix: "Prod-"}`, want: "spec.s3.bucketPrefix"},
		"BadNamespace":  {reason: "Namespaces have no dots.", kind: shared, spec: `{s3: {` + key + `}, allowedNamespaces: ["a.b"]}`, want: "spec.allowedNamespaces[0]"},
		"BadAdoption":   {reason: "There are two ways.", kind: shared, spec: `{s3: {` + key + `}, adoption: Always}`, want: `spec.adoption: Unsupported value: "Always"`},
		"Regional":      {reason: "A region becomes a part of host names.", kind: own, spec: `s3: {region: "evil.example.org/", ` + key + `}`, want: "spec.s3.region"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs := configs[tc.kind].create(t, providerConfig(t, tc.kind, tc.spec))
			all := strings.Join(errs, "\n")
			if (all == "") != (tc.want == "") || !strings.Contains(all, tc.want) {
				t.Errorf("\n%s\ncreate(...): want %q, got:\n%s", tc.reason, tc.want, all)
			}
		})
	}
}
