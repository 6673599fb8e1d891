// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"strings"
	"testing"
)

const previewXRD = "apis/preview/definition.yaml"

// previewOf is a Preview of a name with fields of its spec.
func previewOf(id, fields string) map[string]any {
	object := smallest(name(id))
	object["kind"], object["spec"] = "Preview", map[string]any{}
	spec(fields)(object)
	return object
}

func TestPreviews(t *testing.T) {
	a := newAdmission(t, readXRD(t, previewXRD))
	for name, object := range map[string]map[string]any{
		"Smallest": previewOf("a", `{algorithm: {of: reco}}`),
		"Database": previewOf("a", `{database: {of: orders-db, data: Empty}}`),
		"Limits": previewOf("a23456789-123456789-123456789-1234567", `{owner: "jane <jane@example.org>", ttl: 2160h, idleAfter: 24h,
			algorithm: {of: reco, image: "x@sha256:1", replicas: 10, args: [], env: [{name: A, value: a}], host: a.example.org},
			database: {of: orders-db, data: Moment, at: "2026-11-21T08:59:00Z", replicas: 3, storage: 1Gi, mask: {configMapRef: {name: orders-mask}}}}`),
		"Masked": previewOf("a", `{database: {of: orders-db, data: LatestBackup, mask: {statements: [{database: orders_db, sql: "delete from people"}]}}}`),
		"Until":  previewOf("a", `{expiresAt: "2026-11-28T18:00:00Z", algorithm: {of: reco}}`),
	} {
		t.Run(name, func(t *testing.T) {
			if _, errs := a.create(t, object); len(errs) > 0 {
				t.Errorf("create(...): want no errors, got:\n%s", strings.Join(errs, "\n"))
			}
		})
	}
	all := map[string]refused{
		"Name": {
			reason: "Names of the copies begin with it.", object: previewOf("a23456789-123456789-123456789-12345678", `{algorithm: {of: reco}}`),
			want: []string{"metadata.name: Invalid value: must be at most 37 lower case letters, digits and '-', start with a letter and end with a letter or digit, " +
				"because the names of its Algorithm and its Database begin with it"},
		},
	}
	for _, m := range []struct{ fields, want string }{
		{`{}`, "spec: Invalid value: algorithm, database: set at least one, otherwise there is nothing to preview"},
		{`{ttl: 1h, expiresAt: "2026-11-28T18:00:00Z", algorithm: {of: a}}`, "spec.ttl: Invalid value: set ttl or expiresAt, not both"},
		{`{idleAfter: 1h, database: {of: a, data: Empty}}`, "spec.idleAfter: Invalid value: needs algorithm, because only its requests are counted: remove idleAfter, or set algorithm"},
		{`{idleAfter: 30s, algorithm: {of: a}}`, "spec.idleAfter: Invalid value: \"30s\": must be from 1m to 24h, for instance 1h"},
		{`{ttl: 1m, algorithm: {of: a}}`, "spec.ttl: Invalid value: \"1m\": must be from 5m to 2160h, for instance 48h"},
		{`{owner: "a\nb", algorithm: {of: a}}`, "spec.owner: Invalid value: \"a\\nb\": must not have control characters"},
		{`{algorithm: {of: A}}`, "spec.algorithm.of: Invalid value: \"A\": must be the name of an Algorithm: lower case letters, digits and '-', with a letter first and no '-' at the end"},
		{`{algorithm: {of: a, image: "a b"}}`, "spec.algorithm.image: Invalid value: \"a b\": must be an image reference: letters, digits and any of . _ - / : @ +"},
		{`{algorithm: {of: a, host: "*.example.org"}}`, "spec.algorithm.host: Invalid value: \"*.example.org\": must be a host name in lower case, for instance reco-pr-123.preview.example.org"},
		{`{database: {of: A, data: Empty}}`, "spec.database.of: Invalid value: \"A\": must be the name of a Database"},
		{`{database: {of: a, data: Moment}}`, "spec.database.at: Invalid value: at is required for data Moment, and only for it"},
		{`{database: {of: a, data: Empty, at: "2026-11-21T08:59:00Z"}}`, "spec.database.at: Invalid value: at is required for data Moment, and only for it"},
		{`{database: {of: a, data: Empty, mask: {configMapRef: {name: a}}}}`, "spec.database.mask: Invalid value: there is nothing to mask with data Empty: remove mask, or choose other data"},
		{`{database: {of: a, data: LatestBackup, mask: {}}}`, "spec.database.mask: Invalid value: exactly one of the fields in [statements configMapRef] must be set"},
		{`{database: {of: a, data: LatestBackup, mask: {configMapRef: {name: A}}}}`, "spec.database.mask.configMapRef.name: Invalid value: \"A\": must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"},
		{`{database: {of: a, data: LatestBackup, mask: {statements: [{database: A, sql: x}]}}}`, "spec.database.mask.statements[0].database: Invalid value: \"A\": must be the name of a database: lower case letters, digits and _, starting with a letter"},
		{`{database: {of: a, data: Moment, at: today}}`, "spec.database.at: Invalid value: \"today\": must be a time with its zone, for instance 2026-11-21T08:59:00Z"},
		{`{database: {of: a, data: Empty, storage: 1Mi}}`, "spec.database.storage: Invalid value: \"1Mi\": must be a quantity of at least 1Gi, for instance 20Gi"},
		{`{algorithm: {of: a, env: [{name: 1a}]}}`, "spec.algorithm.env[0].name: Invalid value: \"1a\": must be letters, digits, '_', '-' or '.', and not start with a digit"},
		{`{algorithm: {of: a, env: [{name: a, valueFrom: {}}]}}`, "spec.algorithm.env[0].valueFrom: Invalid value: set exactly one of secretKeyRef and configMapKeyRef"},
		{`{algorithm: {of: a, env: [{name: a, value: a, valueFrom: {secretKeyRef: {name: a, key: a}}}]}}`, "spec.algorithm.env[0]: Invalid value: set either value or valueFrom, not both"},
		{`{algorithm: {of: a, env: [{name: a, valueFrom: {secretKeyRef: {name: A, key: a}}}]}}`, "spec.algorithm.env[0].valueFrom.secretKeyRef.name: Invalid value: \"A\": must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"},
		{`{algorithm: {of: a, env: [{name: a, valueFrom: {secretKeyRef: {name: a, key: "a b"}}}]}}`, "spec.algorithm.env[0].valueFrom.secretKeyRef.key: Invalid value: \"a b\": must be letters, digits, '-', '_' and '.', and not start with '..'"},
		{`{algorithm: {of: a, env: [{name: a, valueFrom: {configMapKeyRef: {name: A, key: a}}}]}}`, "spec.algorithm.env[0].valueFrom.configMapKeyRef.name: Invalid value: \"A\": must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"},
		{`{algorithm: {of: a, env: [{name: a, valueFrom: {configMapKeyRef: {name: a, key: "a b"}}}]}}`, "spec.algorithm.env[0].valueFrom.configMapKeyRef.key: Invalid value: \"a b\": must be letters, digits, '-', '_' and '.', and not start with '..'"},
	} {
		all[m.fields] = refused{reason: "What cannot work is refused at once.", object: previewOf("a", m.fields), want: []string{m.want}}
	}
	a.refuses(t, previewXRD, all)
}

// TestPreviewKeepsItsData: it is copied once. What a Preview lacked may be added.
func TestPreviewKeepsItsData(t *testing.T) {
	const copied = `{algorithm: {of: reco}, database: {of: orders-db, data: Moment, at: "2026-11-21T08:59:00Z"}}`
	const kept = "spec.database: Invalid value: of, data and at cannot be changed, because data is copied once: make another Preview"
	a := newAdmission(t, readXRD(t, previewXRD))
	for after, want := range map[string]string{
		`{algorithm: {of: shop, image: x}, ttl: 96h, database: {of: orders-db, data: Moment, at: "2026-11-21T08:59:00Z", storage: 2Gi}}`: "",
		`{algorithm: {of: reco}}`: "",
		`{database: {of: orders-db, data: Moment, at: "2026-11-21T08:59:00Z", mask: {configMapRef: {name: late}}}}`: "spec.database.mask: Invalid value: cannot be changed, because data is masked once, when it is copied: make another Preview",
		`{database: {of: other-db, data: Moment, at: "2026-11-21T08:59:00Z"}}`:                                      kept,
		`{database: {of: orders-db, data: LatestBackup}}`:                                                           kept,
		`{database: {of: orders-db, data: Moment, at: "2026-11-21T09:59:00Z"}}`:                                     kept,
	} {
		before, errs := a.create(t, previewOf("a", copied))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		if got := strings.Join(a.update(t, before, previewOf("a", after)), "\n"); got != want {
			t.Errorf("%s: want %q, got %q", after, want, got)
		}
	}
}
