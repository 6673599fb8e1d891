// SPDX-License-Identifier: Apache-2.0

package database

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// TestBeyondThePlatform makes nothing of a value that the platform does not allow. What runs with it already stays, and so does what an
// edit would have changed.
func TestBeyondThePlatform(t *testing.T) {
	bounded := inputv1alpha1.AllowedToDatabases{
		Hostnames: []inputv1alpha1.Allowed{{Name: "*.{namespace}.db.example.org"}},
		Issuers:   []inputv1alpha1.Allowed{{Name: "Issuer/*"}},
		Roles:     []inputv1alpha1.Allowed{{Name: "arn:aws:iam::123456789012:role/{namespace}/*"}},

		PriorityClasses: []inputv1alpha1.Allowed{{Name: "databases"}},
		Tolerations:     []inputv1alpha1.Allowed{{Name: "dedicated=databases"}},
	}
	const start = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi`
	for name, tc := range map[string]struct {
		reason string
		spec   string
		words  []string
	}{
		"Hostname": {
			"A certificate for a name of others would pass for them.", start + `, expose: {sourceRanges: [203.0.113.0/24], hostname: login.example.org}}`,
			[]string{"spec.expose.hostname", `"login.example.org"`, "*.shop.db.example.org", "database.allowed.hostnames"},
		},
		"Priority": {
			"Who runs before others is the platform's to say.", start + `, pod: {priorityClassName: system-node-critical}}`,
			[]string{"spec.pod.priorityClassName", `"system-node-critical"`, "databases", "database.allowed.priorityClasses"},
		},
		"Toleration": {
			"Nodes for others stay theirs.", start + `, pod: {tolerations: [{operator: Exists}]}}`,
			[]string{"spec.pod.tolerations[0]", `"*"`, "dedicated=databases", "database.allowed.tolerations"},
		},
		"Role": {
			"Backups of others are for their role.", start + `, workloadIdentity: {roleArn: "arn:aws:iam::123456789012:role/billing/backups"}}`,
			[]string{"spec.workloadIdentity.roleArn", `"arn:aws:iam::123456789012:role/billing/backups"`, "arn:aws:iam::123456789012:role/shop/*", "database.allowed.roles"},
		},
		"Issuer": {
			"An issuer of the platform is not for everybody.", start + `, tls: {issuerRef: {kind: ClusterIssuer, name: vault}}}`,
			[]string{"spec.tls.issuerRef", `"ClusterIssuer/vault"`, "ClusterIssuer/platform, Issuer/*", "database.allowed.issuers"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			refused := func(w *world, what string) *compose.Plan {
				t.Helper()
				w.request.Settings.Database.Allowed = bounded
				w.request.Settings.Database.IssuerRef = &v1alpha1.IssuerReference{Kind: "ClusterIssuer", Name: "platform"}
				p := w.plan()
				status, reason, message := condition(p, string(v1alpha1.TypeAccepted))
				if status != "False" || reason != string(v1alpha1.ReasonInvalidSpec) {
					t.Errorf("%s\n%s: Accepted is %s, %s", tc.reason, what, status, reason)
				}
				for _, word := range tc.words {
					if !strings.Contains(message, word) {
						t.Errorf("%s: message %q lacks %q", what, message, word)
					}
				}
				for name, o := range w.request.Observed {
					if diff := cmp.Diff(any(compose.Keep(o)), p.Objects[name].Object); diff != "" && strings.HasPrefix(name, "member-") {
						t.Errorf("%s changes %s: -observed, +desired:\n%s", what, name, diff)
					}
				}
				return p
			}
			if p := refused(newWorld(t, tc.spec), "a new Database"); len(p.Objects) > 0 {
				t.Errorf("%s\nit has %d objects", tc.reason, len(p.Objects))
			}
			edited := running(t, basic)
			edited.edit(tc.spec)
			refused(edited, "an edit")
			runs := newWorld(t, tc.spec)
			for range 6 {
				runs.pass()
			}
			if status, reason, message := condition(runs.plan(), string(v1alpha1.TypeAccepted)); status != "True" {
				t.Fatalf("without a list everything is allowed, got %s: %s", reason, message)
			}
			refused(runs, "a list that is set later")
		})
	}
	within := newWorld(t, start+`, tls: {issuerRef: {kind: Issuer, name: own}}, expose: {sourceRanges: [203.0.113.0/24], hostname: a.shop.db.example.org}}`)
	within.request.Settings.Database.Allowed = bounded
	if status, reason, message := condition(within.plan(), string(v1alpha1.TypeAccepted)); status != "True" {
		t.Errorf("what is in the lists is accepted, got %s: %s", reason, message)
	}
}
