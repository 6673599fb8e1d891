// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// The CRDs of a model registry.
const (
	modelCRD   = "package/provider/crds/registry.capstan.dev_registeredmodels.yaml"
	versionCRD = "package/provider/crds/registry.capstan.dev_modelversions.yaml"
	aliasCRD   = "package/provider/crds/registry.capstan.dev_modelaliases.yaml"
)

// entry is the smallest object of a kind of the registry.
func entry(kind string, edits ...edit) map[string]any {
	params := map[string]any{
		"RegisteredModel": map[string]any{},
		"ModelVersion":    map[string]any{"model": "reco", "source": "s3://models/reco/7"},
		"ModelAlias":      map[string]any{"model": "reco", "alias": "champion", "version": "7"},
	}[kind]
	object := map[string]any{
		"apiVersion": "registry.capstan.dev/v1alpha1",
		"kind":       kind,
		"metadata":   map[string]any{"name": "reco", "namespace": "shop"},
		"spec":       map[string]any{"forProvider": params},
	}
	for _, e := range edits {
		e(object)
	}
	return object
}

// params merges YAML into spec.forProvider; null removes.
func params(text string) edit {
	return func(object map[string]any) {
		values := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &values); err != nil {
			panic(fmt.Sprintf("bad YAML in a test: %v", err))
		}
		p := object["spec"].(map[string]any)["forProvider"].(map[string]any)
		maps.Copy(p, whole(values).(map[string]any))
		maps.DeleteFunc(p, func(_ string, v any) bool { return v == nil })
	}
}

// evidence of n keys and values of these lengths.
func evidence(n, key, value int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.Repeat(string(rune('a'+i)), key) + ": " + strings.Repeat("v", value)
	}
	return "evidence: {" + strings.Join(all, ", ") + "}"
}

func TestRegistryAccepted(t *testing.T) {
	observe := spec(`managementPolicies: [Observe]`)
	cases := map[string]struct {
		reason string
		path   string
		object map[string]any
	}{
		"Model":          {reason: "A name is enough.", path: modelCRD, object: entry("RegisteredModel")},
		"ModelNoSpec":    {reason: "Nothing of the spec is required.", path: modelCRD, object: entry("RegisteredModel", func(o map[string]any) { o["spec"] = map[string]any{} })},
		"ModelTags":      {reason: "Tags with all that is allowed.", path: modelCRD, object: entry("RegisteredModel", params(`{adopt: true, description: "", tags: {"a/b.c_d e-1": "", ".x": "y"}}`))},
		"ModelOwn":       {reason: "A config of the namespace.", path: modelCRD, object: entry("RegisteredModel", spec(`providerConfigRef: {kind: ProviderConfig, name: mine}`))},
		"Version":        {reason: "Model and source are enough.", path: versionCRD, object: entry("ModelVersion")},
		"VersionFull":    {reason: "Everything that is made.", path: versionCRD, object: entry("ModelVersion", params(`{adopt: true, runId: 5c3a2f, description: "läuft", tags: {k: v}}`))},
		"ObserveNumber":  {reason: "What to observe.", path: versionCRD, object: entry("ModelVersion", observe, params(`{source: null, version: "7"}`))},
		"ObserveAlias":   {reason: "What to observe.", path: versionCRD, object: entry("ModelVersion", observe, params(`{source: null, alias: champion}`))},
		"ObserveByName":  {reason: "The external name tells.", path: versionCRD, object: entry("ModelVersion", observe, params(`{source: null}`))},
		"SourceArtifact": {reason: "The registry's own store.", path: versionCRD, object: entry("ModelVersion", params(`source: "mlflow-artifacts:/1/abc/model"`))},
		"SourceUnicode":  {reason: "Any letter.", path: versionCRD, object: entry("ModelVersion", params(`source: "s3://models/größe%20x"`))},
		"SpaceInModel":   {reason: "MLflow takes spaces.", path: versionCRD, object: entry("ModelVersion", params(`model: "my model.v2"`))},
		"Alias":          {reason: "Where it points.", path: aliasCRD, object: entry("ModelAlias")},
		"Evidence":       {reason: "What is known of the version.", path: aliasCRD, object: entry("ModelAlias", params(`evidence: {revision: reco-5d9f7c, live.since-a: "", e: "größe\n"}`))},
		"EvidenceMost":   {reason: "As much as there can be.", path: aliasCRD, object: entry("ModelAlias", params(`alias: `+strings.Repeat("a", 200)), params(evidence(20, 37, 1024)))},
		"AliasVictory":   {reason: "Only v and digits is reserved.", path: aliasCRD, object: entry("ModelAlias", params(`alias: v1-candidate`))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, errs := newAdmission(t, readCRD(t, tc.path)).create(t, tc.object); len(errs) > 0 {
				t.Errorf("\n%s\ncreate(...): want no errors, got:\n%s", tc.reason, strings.Join(errs, "\n"))
			}
		})
	}
}

func TestRegistryRefused(t *testing.T) {
	const (
		keys     = "tags: a key must have 1 to 250 letters, digits, spaces or ._/-, and no path segment that is empty, . or ..; a value at most 5000 characters"
		reserved = "tags: keys that begin with capstan.dev/ or mlflow. are reserved"
		says     = "evidence: a key must have 1 to 37 lower case letters, digits, . or -, and begin with a letter"
		plain    = "is not the plain URI of files, for instance s3://models/reco/7"
	)
	cases := map[string]struct {
		reason string
		path   string
		object map[string]any
		want   string
	}{
		"OwnerTag":       {reason: "Nobody gives away what is his.", path: modelCRD, object: entry("RegisteredModel", params(`tags: {capstan.dev/owner: x}`)), want: reserved},
		"UpperOwnerTag":  {reason: "Databases may ignore case.", path: modelCRD, object: entry("RegisteredModel", params(`tags: {CAPSTAN.dev/owner: x}`)), want: reserved},
		"AliasTag":       {reason: "Nor an alias.", path: versionCRD, object: entry("ModelVersion", params(`tags: {capstan.dev/alias.x: x}`)), want: reserved},
		"MLflowTag":      {reason: "MLflow's own.", path: versionCRD, object: entry("ModelVersion", params(`tags: {MLflow.prompt.is_prompt: "true"}`)), want: reserved},
		"EmptyStep":      {reason: "MLflow refuses it.", path: modelCRD, object: entry("RegisteredModel", params(`tags: {a//b: x}`)), want: keys},
		"LeadingSlash":   {reason: "MLflow refuses it.", path: modelCRD, object: entry("RegisteredModel", params(`tags: {/a: x}`)), want: keys},
		"TrailingSlash":  {reason: "MLflow refuses it.", path: modelCRD, object: entry("RegisteredModel", params(`tags: {a/: x}`)), want: keys},
		"DotDot":         {reason: "MLflow refuses it.", path: versionCRD, object: entry("ModelVersion", params(`tags: {a/../b: x}`)), want: keys},
		"Dot":            {reason: "MLflow refuses it.", path: versionCRD, object: entry("ModelVersion", params(`tags: {.: x}`)), want: keys},
		"EmptyKey":       {reason: "No key.", path: modelCRD, object: entry("RegisteredModel", params(`tags: {"": x}`)), want: keys},
		"LongKey":        {reason: "MLflow refuses it.", path: modelCRD, object: entry("RegisteredModel", params(`tags: {`+strings.Repeat("k", 251)+`: x}`)), want: keys},
		"LongValue":      {reason: "No registry promises more.", path: modelCRD, object: entry("RegisteredModel", params(`tags: {k: `+strings.Repeat("v", 5001)+`}`)), want: keys},
		"NoTags":         {reason: "An empty map is a mistake.", path: modelCRD, object: entry("RegisteredModel", params(`tags: {}`)), want: "should have at least 1 properties"},
		"LongText":       {reason: "No registry promises more.", path: modelCRD, object: entry("RegisteredModel", params(`description: `+strings.Repeat("v", 5001))), want: "Too long"},
		"OtherConfig":    {reason: "There is no such kind of config.", path: modelCRD, object: entry("RegisteredModel", spec(`providerConfigRef: {kind: Secret, name: x}`)), want: "providerConfigRef.kind: Secret is neither"},
		"NoModel":        {reason: "A version of what?", path: versionCRD, object: entry("ModelVersion", params(`model: null`)), want: "spec.forProvider.model: Required value"},
		"NoSource":       {reason: "A version of what?", path: versionCRD, object: entry("ModelVersion", params(`source: null`)), want: "source: is required, because managementPolicies include Create"},
		"NoSourceAll":    {reason: "* includes Create.", path: versionCRD, object: entry("ModelVersion", spec(`managementPolicies: ["*"]`), params(`source: null`)), want: "source: is required"},
		"VersionToMake":  {reason: "The registry numbers.", path: versionCRD, object: entry("ModelVersion", params(`version: "7"`)), want: `version and alias: are only for observing: remove them, or set managementPolicies to ["Observe"]`},
		"Both":           {reason: "Which one?", path: versionCRD, object: entry("ModelVersion", spec(`managementPolicies: [Observe]`), params(`{version: "7", alias: champion}`)), want: "set only one of them"},
		"Zero":           {reason: "Versions begin at 1.", path: versionCRD, object: entry("ModelVersion", spec(`managementPolicies: [Observe]`), params(`version: "0"`)), want: "spec.forProvider.version in body should match"},
		"Latest":         {reason: "It is no alias.", path: versionCRD, object: entry("ModelVersion", spec(`managementPolicies: [Observe]`), params(`alias: latest`)), want: "alias: latest is reserved by the registry; observe a version by its number"},
		"QuoteInModel":   {reason: "It would end a filter.", path: versionCRD, object: entry("ModelVersion", params(`model: "a' OR"`)), want: "spec.forProvider.model in body should match"},
		"SlashInModel":   {reason: "MLflow's file store would take it for a path.", path: aliasCRD, object: entry("ModelAlias", params(`model: a/b`)), want: "spec.forProvider.model in body should match"},
		"File":           {reason: "The registry's own files.", path: versionCRD, object: entry("ModelVersion", params(`source: "file:///etc"`)), want: "source: file:///etc " + plain},
		"Path":           {reason: "The registry's own files.", path: versionCRD, object: entry("ModelVersion", params(`source: /etc`)), want: plain},
		"Drive":          {reason: "A drive of Windows.", path: versionCRD, object: entry("ModelVersion", params(`source: "c:/models"`)), want: plain},
		"UpperScheme":    {reason: "The registry ignores case.", path: versionCRD, object: entry("ModelVersion", params(`source: "FILE:/etc"`)), want: plain},
		"StepUp":         {reason: "It leaves its place.", path: versionCRD, object: entry("ModelVersion", params(`source: "s3://a/../b"`)), want: plain},
		"EscapedStep":    {reason: "It leaves its place.", path: versionCRD, object: entry("ModelVersion", params(`source: "s3://a/%2E%2e/b"`)), want: plain},
		"TwiceEscaped":   {reason: "It leaves its place.", path: versionCRD, object: entry("ModelVersion", params(`source: "s3://a/%252e%252e/b"`)), want: plain},
		"Backslash":      {reason: "Some take it for a slash.", path: versionCRD, object: entry("ModelVersion", params(`source: 's3://a\b'`)), want: plain},
		"Query":          {reason: "It may hold credentials.", path: versionCRD, object: entry("ModelVersion", params(`source: "https://a/b?sig=1"`)), want: plain},
		"Fragment":       {reason: "It hides a path.", path: versionCRD, object: entry("ModelVersion", params(`source: "https://a/#/b"`)), want: plain},
		"SpaceInSource":  {reason: "A space.", path: versionCRD, object: entry("ModelVersion", params(`source: "s3://a/b c"`)), want: plain},
		"LongSource":     {reason: "The registry keeps 500.", path: versionCRD, object: entry("ModelVersion", params(`source: "s3://`+strings.Repeat("a", 500)+`"`)), want: "Too long"},
		"RunIDOfAPath":   {reason: "It is no ID.", path: versionCRD, object: entry("ModelVersion", params(`runId: a/b`)), want: "spec.forProvider.runId in body should match"},
		"ReservedLatest": {reason: "The registry refuses it.", path: aliasCRD, object: entry("ModelAlias", params(`alias: Latest`)), want: "alias: Latest is reserved by the registry; choose another name, for instance champion"},
		"ReservedV1":     {reason: "The registry refuses it.", path: aliasCRD, object: entry("ModelAlias", params(`alias: V12`)), want: "alias: V12 is reserved"},
		"DotInAlias":     {reason: "The registry refuses it.", path: aliasCRD, object: entry("ModelAlias", params(`alias: a.b`)), want: "spec.forProvider.alias in body should match"},
		"NoEvidence":     {reason: "An empty map is a mistake.", path: aliasCRD, object: entry("ModelAlias", params(`evidence: {}`)), want: "spec.forProvider.evidence in body should have at least 1 properties"},
		"MuchEvidence":   {reason: "Each is a call.", path: aliasCRD, object: entry("ModelAlias", params(evidence(21, 1, 1))), want: "spec.forProvider.evidence: Too many: 21: must have at most 20 items"},
		"UpperEvidence":  {reason: "Databases may ignore case.", path: aliasCRD, object: entry("ModelAlias", params(`evidence: {c: x, reV: x, Rev: x, revisioN: x}`)), want: says},
		"SlashEvidence":  {reason: "It could be another tag.", path: aliasCRD, object: entry("ModelAlias", params(`evidence: {a/b: x}`)), want: says},
		"SpaceEvidence":  {reason: "It is no key.", path: aliasCRD, object: entry("ModelAlias", params(`evidence: {a b: x}`)), want: says},
		"LineEvidence":   {reason: "It is no key.", path: aliasCRD, object: entry("ModelAlias", params(`evidence: {"a\n": x}`)), want: says},
		"EmptyEvidence":  {reason: "It is no key.", path: aliasCRD, object: entry("ModelAlias", params(`evidence: {"": x}`)), want: says},
		"DotEvidence":    {reason: "It could be a step.", path: aliasCRD, object: entry("ModelAlias", params(`evidence: {.a: x}`)), want: says},
		"LongEvidence":   {reason: "The registry keeps 250.", path: aliasCRD, object: entry("ModelAlias", params(evidence(1, 38, 1))), want: says},
		"LongTale":       {reason: "Tags are short.", path: aliasCRD, object: entry("ModelAlias", params(evidence(1, 1, 1025))), want: "evidence: a value must have at most 1024 characters; store longer text elsewhere, and its address here"},
		"NumberEvidence": {reason: "Tags are text.", path: aliasCRD, object: entry("ModelAlias", params(`evidence: {a: 7}`)), want: "must be of type string"},
		"NoVersion":      {reason: "Where to?", path: aliasCRD, object: entry("ModelAlias", params(`version: null`)), want: "spec.forProvider.version: Required value"},
		"NumberVersion":  {reason: "Versions are text in the API.", path: aliasCRD, object: entry("ModelAlias", params(`version: 7`)), want: "must be of type string"},
		"Unknown":        {reason: "A typo.", path: aliasCRD, object: entry("ModelAlias", params(`aliass: x`)), want: `unknown field "spec.forProvider.aliass"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs := newAdmission(t, readCRD(t, tc.path)).create(t, tc.object)
			if got := strings.Join(errs, "\n"); !strings.Contains(got, tc.want) {
				t.Errorf("\n%s\ncreate(...): want %q, got:\n%s", tc.reason, tc.want, got)
			}
		})
	}
}

// TestRegistryFixed shows what cannot be changed, because it is another entry of the registry then.
func TestRegistryFixed(t *testing.T) {
	run := params(`runId: 5c3a`)
	cases := map[string]struct {
		path     string
		old, new map[string]any
		want     string
	}{
		"Model":       {versionCRD, entry("ModelVersion"), entry("ModelVersion", params(`model: other`)), "model: cannot be changed; make another ModelVersion"},
		"Source":      {versionCRD, entry("ModelVersion"), entry("ModelVersion", params(`source: "s3://x/1"`)), "source: cannot be changed; make another ModelVersion"},
		"NoSource":    {versionCRD, entry("ModelVersion"), entry("ModelVersion", spec(`managementPolicies: [Observe]`), params(`source: null`)), "source: cannot be added or removed"},
		"RunID":       {versionCRD, entry("ModelVersion", run), entry("ModelVersion", params(`runId: 5c3b`)), "runId: cannot be changed; make another ModelVersion"},
		"NoRunID":     {versionCRD, entry("ModelVersion", run), entry("ModelVersion"), "runId: cannot be added or removed"},
		"Text":        {versionCRD, entry("ModelVersion"), entry("ModelVersion", params(`{description: x, tags: {k: v}}`)), ""},
		"AliasModel":  {aliasCRD, entry("ModelAlias"), entry("ModelAlias", params(`model: other`)), "model: cannot be changed; make another ModelAlias"},
		"AliasName":   {aliasCRD, entry("ModelAlias"), entry("ModelAlias", params(`alias: other`)), "alias: cannot be changed; make another ModelAlias"},
		"AliasSays":   {aliasCRD, entry("ModelAlias", params(`evidence: {a: x}`)), entry("ModelAlias", params(`evidence: {b: x}`)), ""},
		"AliasSilent": {aliasCRD, entry("ModelAlias", params(`evidence: {a: x}`)), entry("ModelAlias"), ""},
		"AliasTarget": {aliasCRD, entry("ModelAlias"), entry("ModelAlias", params(`version: "8"`)), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := newAdmission(t, readCRD(t, tc.path))
			old, _ := a.create(t, tc.old)
			now, _ := a.create(t, tc.new)
			errs, _ := a.rules.Validate(t.Context(), nil, a.schema, now, old, celconfig.RuntimeCELCostBudget)
			got := fmt.Sprint(errs)
			if (len(errs) == 0) != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("Validate(...): want %q, got %s", tc.want, got)
			}
		})
	}
}

// TestRegistryKeeps shows that by default what is in the registry stays there.
func TestRegistryKeeps(t *testing.T) {
	for kind, path := range map[string]string{"RegisteredModel": modelCRD, "ModelVersion": versionCRD, "ModelAlias": aliasCRD} {
		got, errs := newAdmission(t, readCRD(t, path)).create(t, entry(kind))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		want := map[string]any{
			"managementPolicies": []any{"Observe", "Create", "Update", "LateInitialize"},
			"providerConfigRef":  map[string]any{"kind": "ClusterProviderConfig", "name": "mlflow"},
		}
		s := maps.Clone(got["spec"].(map[string]any))
		if diff := cmp.Diff(false, s["forProvider"].(map[string]any)["adopt"]); diff != "" {
			t.Errorf("%s: adopt: -want, +got:\n%s", kind, diff)
		}
		delete(s, "forProvider")
		if diff := cmp.Diff(want, s); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", kind, diff)
		}
	}
}
