// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

const bucketCRD = "package/provider/crds/storage.capstan.dev_buckets.yaml"

// bucket with these parameters.
func bucket(t *testing.T, parameters string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(parameters), &values); err != nil {
		t.Fatalf("bad YAML in a test: %v", err)
	}
	return map[string]any{
		"apiVersion": "storage.capstan.dev/v1alpha1",
		"kind":       "Bucket",
		"metadata":   map[string]any{"name": "backups", "namespace": "shop"},
		"spec":       map[string]any{"forProvider": whole(values)},
	}
}

func TestBucketAccepted(t *testing.T) {
	a := newAdmission(t, readCRD(t, bucketCRD))
	cases := map[string]struct {
		reason     string
		parameters string
	}{
		"Smallest":   {reason: "A name is enough.", parameters: `{}`},
		"Region":     {reason: "A region is a word.", parameters: `region: eu-central-1`},
		"Versioning": {reason: "It can be suspended.", parameters: `versioning: Suspended`},
		"Lock":       {reason: "A lock alone.", parameters: `objectLock: {}`},
		"LockDays":   {reason: "With versioning, which it needs.", parameters: `{versioning: Enabled, objectLock: {defaultRetention: {mode: Compliance, days: 36500}}}`},
		"LockYears":  {reason: "Or for years.", parameters: `objectLock: {defaultRetention: {mode: Governance, years: 1}}`},
		"KMS":        {reason: "A key of one's own.", parameters: `encryption: {algorithm: "aws:kms", kmsKeyId: alias/backups, bucketKey: true}`},
		"Lifecycle": {reason: "All that a rule can do.", parameters: `
lifecycleRules:
- {id: a, prefix: wal/, expireAfterDays: 30, expireNoncurrentAfterDays: 1, keepNoncurrentVersions: 3, abortUploadsAfterDays: 7}
- {id: b, tags: {kind: temporary, more: ""}, expireAfterDays: 1}
- {id: c, expireDeleteMarkers: true, abortUploadsAfterDays: 7}`},
		"Policy":       {reason: "A policy, with the space that YAML leaves around it.", parameters: "policy: |\n  {\n    \"Statement\": []\n  }\n"},
		"CORS":         {reason: "One star in each.", parameters: `corsRules: [{allowedOrigins: ["*", "https://*.example.org"], allowedMethods: [GET, HEAD], allowedHeaders: ["x-*"], maxAgeSeconds: 0}]`},
		"Tags":         {reason: "Tags with all that S3 allows.", parameters: `tags: {"team/cost:centre": "a b+c=d.e_f@g", empty: ""}`},
		"PublicAccess": {reason: "Some of it.", parameters: `publicAccessBlock: {blockPublicPolicy: false}`},
		"Consent":      {reason: "Both consents.", parameters: `{adopt: true, forceDestroy: true}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, errs := a.create(t, bucket(t, tc.parameters)); len(errs) > 0 {
				t.Errorf("\n%s\ncreate(...): %s", tc.reason, strings.Join(errs, "\n"))
			}
		})
	}
}

func TestBucketRefused(t *testing.T) {
	a := newAdmission(t, readCRD(t, bucketCRD))
	many := func(n int, format string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(all, ", ")
	}
	cases := map[string]struct {
		reason     string
		parameters string
		// want is part of an error.
		want string
	}{
		"Region":           {reason: "A region becomes a part of host names.", parameters: `region: "evil.example.org/"`, want: "spec.forProvider.region"},
		"Versioning":       {reason: "There are two states.", parameters: `versioning: Disabled`, want: `spec.forProvider.versioning: Unsupported value: "Disabled"`},
		"LockSuspended":    {reason: "A lock needs versions.", parameters: `{versioning: Suspended, objectLock: {}}`, want: "versioning: must be Enabled with objectLock"},
		"LockBoth":         {reason: "One time.", parameters: `objectLock: {defaultRetention: {mode: Governance, days: 1, years: 1}}`, want: "exactly one of the fields in [days years] must be set"},
		"LockNone":         {reason: "Some time.", parameters: `objectLock: {defaultRetention: {mode: Governance}}`, want: "exactly one of the fields in [days years] must be set"},
		"LockMode":         {reason: "There are two modes.", parameters: `objectLock: {defaultRetention: {mode: GOVERNANCE, days: 1}}`, want: `spec.forProvider.objectLock.defaultRetention.mode: Unsupported value: "GOVERNANCE"`},
		"LockDays":         {reason: "No day is no time.", parameters: `objectLock: {defaultRetention: {mode: Governance, days: 0}}`, want: "defaultRetention.days in body should be greater than or equal to 1"},
		"Algorithm":        {reason: "There are two algorithms.", parameters: `encryption: {algorithm: DES}`, want: `spec.forProvider.encryption.algorithm: Unsupported value: "DES"`},
		"KeyWithoutKMS":    {reason: "A key of a service that is not used.", parameters: `encryption: {algorithm: AES256, kmsKeyId: x}`, want: "kmsKeyId: is only for algorithm aws:kms"},
		"BucketKey":        {reason: "The same.", parameters: `encryption: {algorithm: AES256, bucketKey: true}`, want: "bucketKey: is only for algorithm aws:kms"},
		"NoRules":          {reason: "No rules are no list.", parameters: `lifecycleRules: []`, want: "should have at least 1 items"},
		"ManyRules":        {reason: "Bounded.", parameters: `lifecycleRules: [` + many(101, "{id: r%d, expireAfterDays: 1}") + `]`, want: "must have at most 100 items"},
		"SameID":           {reason: "An ID is one.", parameters: `lifecycleRules: [{id: a, expireAfterDays: 1}, {id: a, expireAfterDays: 2}]`, want: "Duplicate value"},
		"IdleRule":         {reason: "A rule does something.", parameters: `lifecycleRules: [{id: a, prefix: x, expireDeleteMarkers: false}]`, want: "a rule must have expireAfterDays, expireNoncurrentAfterDays, abortUploadsAfterDays or expireDeleteMarkers"},
		"MarkersAndDays":   {reason: "S3 refuses both.", parameters: `lifecycleRules: [{id: a, expireAfterDays: 1, expireDeleteMarkers: true}]`, want: "expireDeleteMarkers: cannot be combined with expireAfterDays"},
		"KeepNothing":      {reason: "Of what?", parameters: `lifecycleRules: [{id: a, expireAfterDays: 1, keepNoncurrentVersions: 1}]`, want: "keepNoncurrentVersions: needs expireNoncurrentAfterDays"},
		"UploadsByTag":     {reason: "Uploads have no tags.", parameters: `lifecycleRules: [{id: a, tags: {a: b}, abortUploadsAfterDays: 1}]`, want: "abortUploadsAfterDays: cannot be combined with tags"},
		"MarkersByTag":     {reason: "Markers have no tags.", parameters: `lifecycleRules: [{id: a, tags: {a: b}, expireDeleteMarkers: true}]`, want: "expireDeleteMarkers: cannot be combined with tags"},
		"RuleTag":          {reason: "A tag has a key.", parameters: `lifecycleRules: [{id: a, tags: {"": b}, expireAfterDays: 1}]`, want: "tags: a key must have 1 to 128 characters, a value at most 256"},
		"PolicyText":       {reason: "A policy is JSON.", parameters: `policy: "Allow all"`, want: "policy: must be a JSON object"},
		"PolicyObject":     {reason: "As text.", parameters: `policy: {Statement: []}`, want: "must be of type string"},
		"PolicyLong":       {reason: "S3 takes 20 KiB.", parameters: `policy: "{` + strings.Repeat(" ", 20480) + `}"`, want: "may not be more than 20480 bytes"},
		"CORSMethod":       {reason: "OPTIONS is the browser's.", parameters: `corsRules: [{allowedOrigins: ["*"], allowedMethods: [OPTIONS]}]`, want: `allowedMethods[0]: Unsupported value: "OPTIONS"`},
		"CORSStars":        {reason: "S3 takes one star.", parameters: `corsRules: [{allowedOrigins: ["https://*.*.org"], allowedMethods: [GET]}]`, want: "allowedOrigins: each may have at most one *"},
		"CORSHeaderStars":  {reason: "The same.", parameters: `corsRules: [{allowedOrigins: ["*"], allowedMethods: [GET], allowedHeaders: ["*-*"]}]`, want: "allowedHeaders: each may have at most one *"},
		"CORSNobody":       {reason: "Whose pages?", parameters: `corsRules: [{allowedMethods: [GET]}]`, want: "allowedOrigins: Required value"},
		"OwnerTag":         {reason: "Whose a bucket is nobody writes.", parameters: `tags: {capstan.dev/owner: me}`, want: "tags: keys that begin with capstan.dev/ or aws: are reserved"},
		"AWSTag":           {reason: "AWS refuses these.", parameters: `tags: {"aws:x": z}`, want: "tags: keys that begin with capstan.dev/ or aws: are reserved"},
		"ManyTags":         {reason: "S3 takes 50, and others may have set some.", parameters: `tags: {` + many(46, "k%d: v") + `}`, want: "must have at most 45 items"},
		"LongTag":          {reason: "A value has an end.", parameters: `tags: {a: ` + strings.Repeat("x", 257) + `}`, want: "tags: a key must have 1 to 128 characters, a value at most 256"},
		"PublicAccessWord": {reason: "True or false.", parameters: `publicAccessBlock: {blockPublicAcls: "yes"}`, want: "must be of type boolean"},
		"Unknown":          {reason: "A misspelled field.", parameters: `lifecycle: []`, want: `unknown field "spec.forProvider.lifecycle"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs := a.create(t, bucket(t, tc.parameters))
			if all := strings.Join(errs, "\n"); !strings.Contains(all, tc.want) {
				t.Errorf("\n%s\ncreate(...): want %q, got:\n%s", tc.reason, tc.want, all)
			}
		})
	}
}

// TestBucketReferences shows what of a Bucket beside its parameters is refused.
func TestBucketReferences(t *testing.T) {
	a := newAdmission(t, readCRD(t, bucketCRD))
	cases := map[string]struct {
		reason string
		edit   edit
		want   string
	}{
		"LongName":  {reason: "A bucket's name has 63 characters, and a tag has an end.", edit: name(strings.Repeat("a", 64)), want: "metadata.name: must have at most 63 characters"},
		"OtherKind": {reason: "There are two kinds of config.", edit: spec(`providerConfigRef: {kind: Secret, name: x}`), want: "providerConfigRef.kind: Secret is neither ProviderConfig nor ClusterProviderConfig"},
		"OtherPlace": {
			reason: "A reference has no namespace.", edit: spec(`providerConfigRef: {kind: ProviderConfig, name: x, namespace: bank}`),
			want: `unknown field "spec.providerConfigRef.namespace"`,
		},
		"OtherSecret": {
			reason: "Neither has that of the connection Secret.", edit: spec(`writeConnectionSecretToRef: {name: x, namespace: bank}`),
			want: `unknown field "spec.writeConnectionSecretToRef.namespace"`,
		},
		"OtherPolicy": {reason: "Policies are the runtime's.", edit: spec(`managementPolicies: [Destroy]`), want: `spec.managementPolicies[0]: Unsupported value: "Destroy"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := bucket(t, `{}`)
			tc.edit(object)
			_, errs := a.create(t, object)
			if all := strings.Join(errs, "\n"); !strings.Contains(all, tc.want) {
				t.Errorf("\n%s\ncreate(...): want %q, got:\n%s", tc.reason, tc.want, all)
			}
		})
	}
}

// TestBucketFixed shows what cannot be changed once a bucket is there.
func TestBucketFixed(t *testing.T) {
	a := newAdmission(t, readCRD(t, bucketCRD))
	cases := map[string]struct {
		reason   string
		old, new string
		want     string
	}{
		"Region":        {reason: "A bucket does not move.", old: `region: here`, new: `region: there`, want: "region: cannot be changed; make another Bucket"},
		"RegionAdded":   {reason: "It may be in another.", old: `{}`, new: `region: there`, want: "region: cannot be added or removed later"},
		"RegionRemoved": {reason: "The same.", old: `region: here`, new: `{}`, want: "region: cannot be added or removed later"},
		"LockAdded":     {reason: "A lock is decided at first.", old: `{}`, new: `objectLock: {}`, want: "objectLock: can be set only when a bucket is created"},
		"LockRemoved":   {reason: "And stays.", old: `objectLock: {}`, new: `{}`, want: "objectLock: can be set only when a bucket is created"},
		"Retention":     {reason: "How long it lasts may change.", old: `objectLock: {}`, new: `objectLock: {defaultRetention: {mode: Governance, days: 1}}`},
		"Rest":          {reason: "And so may everything else.", old: `{versioning: Enabled, adopt: true}`, new: `{forceDestroy: true, tags: {a: b}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, after := bucket(t, tc.old), bucket(t, tc.new)
			found, _ := a.rules.Validate(t.Context(), nil, a.schema, runtime.DeepCopyJSON(after), before, celconfig.RuntimeCELCostBudget)
			all := fmt.Sprint(found.ToAggregate())
			if tc.want == "" && len(found) > 0 || !strings.Contains(all, tc.want) {
				t.Errorf("\n%s\nupdate(...): want %q, got:\n%s", tc.reason, tc.want, all)
			}
		})
	}
}
